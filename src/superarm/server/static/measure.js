// Measuring with one thumb, with or without a connection.
//
// What was typed is kept on this device until the server has said that it has it. A total is told
// under its pull's id: telling it twice changes nothing, so that a lost answer never doubles it.

import { refresh } from "./live.js";

const here = document.getElementById("measure");
const get = (id) => document.getElementById(id);
const { api } = here.dataset;
const key = `superarm:measure:${here.dataset.campaign}`;
const each = `superarm:total:${here.dataset.campaign}:`; // one entry a total: two tabs lose none
const form = get("tell");
const field = form.elements.total;

const state = load();
let sending = false;
let pause = 0;
let timer = 0;

function load() {
  let kept = {};
  try {
    kept = JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    // Nothing, or nothing that can be read, is kept.
  }
  const held = JSON.parse(here.dataset.pulls);
  const worker = here.dataset.worker || kept.worker || "";
  return {
    worker,
    without: JSON.parse(here.dataset.without),
    ahead: kept.ahead ?? 3,
    queue: keptTotals(),
    // What the server says that this worker holds; where it says nothing, what it said before.
    pulls: held.length || worker !== kept.worker ? held : kept.pulls ?? [],
  };
}

function keptTotals() {
  try {
    return Object.keys(localStorage)
      .filter((name) => name.startsWith(each))
      .map((name) => JSON.parse(localStorage.getItem(name)))
      .sort((a, b) => a.at - b.at);
  } catch {
    return [];
  }
}

function save() {
  const { worker, ahead, pulls } = state;
  keep(key, { worker, ahead, pulls });
}

function keep(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    get("last").textContent = "This browser keeps nothing: stay on this page until all is sent.";
  }
}

class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function send(path, body) {
  const answer = await fetch(`${api}/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": here.dataset.csrf },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20000),
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, said.detail ?? answer.statusText);
  return said;
}

// ---- the group that is measured now ----------------------------------------------------------

function pending() {
  const told = new Set(state.queue.map((one) => one.id));
  return state.pulls.filter((pull) => !told.has(pull.id));
}

function draw() {
  const [now] = pending();
  const shown = form.elements.id.value;
  form.hidden = !now;
  get("again").hidden = Boolean(now);
  get("waiting").hidden = Boolean(now);
  get("group").hidden = !now;
  get("pull-id").textContent = now ? now.id : "";
  if (now && (shown !== now.id || !get("group").children.length)) {
    get("group").replaceChildren(...now.members.map((name) => {
      const item = document.createElement("li");
      item.textContent = name;
      return item;
    }));
    get("group").className = `group${now.members.length > 24 ? " many crowd" : now.members.length > 8 ? " many" : ""}`;
  }
  form.elements.id.value = now ? now.id : "";
  if (!now && !navigator.onLine) get("waiting").textContent = "No group is left on this device: more come with the connection.";
  drawQueue();
}

function drawQueue() {
  const waiting = state.queue.filter((one) => !one.wrong);
  const wrong = state.queue.filter((one) => one.wrong);
  get("queue").hidden = !wrong.length && (!waiting.length || (sending && navigator.onLine && pause === 0));
  get("queue-text").textContent = [
    waiting.length ? `${waiting.length} ${waiting.length === 1 ? "total waits" : "totals wait"} to be sent${navigator.onLine ? "." : ": there is no connection."}` : "",
    wrong.length ? `${wrong.length} could not be taken.` : "",
  ].filter(Boolean).join(" ");
  get("queue-list").replaceChildren(...state.queue.map((one) => {
    const item = document.createElement("li");
    const text = document.createElement("span");
    text.textContent = `${one.id}: ${one.total}${one.wrong ? ` – ${one.wrong}` : ""}`;
    item.append(text);
    const word = one.wrong ? "Discard" : "Take back";
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "button little";
    drop.textContent = word;
    drop.setAttribute("aria-label", `${word} ${one.id}`);
    drop.addEventListener("click", () => { if (one.wrong) { forget(one.id); draw(); } else takeBack(one.id); });
    item.append(drop);
    return item;
  }));
}

function takeBack(id) {
  const { pulls } = state;
  forget(id);
  state.pulls = pulls;
  save();
  draw();
}

function forget(id) {
  try {
    localStorage.removeItem(each + id);
  } catch {
    // Then it was never there.
  }
  state.queue = state.queue.filter((one) => one.id !== id);
  state.pulls = state.pulls.filter((pull) => pull.id !== id);
  save();
}

function check(text) {
  const plain = text.trim().replace(",", ".").replace("−", "-");
  const total = plain === "" ? NaN : Number(plain);
  const { low, high, whole } = here.dataset;
  const fits = Number.isFinite(total) && (low === "" || total >= Number(low)) && (high === "" || total <= Number(high))
    && (!whole || Number.isInteger(total));
  return fits ? total : null;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const [now] = pending();
  const total = check(field.value);
  field.setAttribute("aria-invalid", String(total === null));
  get("total-hint").classList.toggle("wrong", total === null);
  if (total === null || !now) { field.focus(); return; }
  const one = { id: now.id, total, members: now.members, worker: state.worker, at: Date.now() };
  state.queue.push(one);
  keep(each + now.id, one);
  field.value = "";
  get("last").textContent = `Last: ${now.id}: ${total}`;
  draw();
  field.focus({ preventScroll: true });
  window.scrollTo({ top: 0 });
  flush();
});

// What the server has is changed there, with a reason.
function taken(one) {
  const link = document.createElement("a");
  link.href = `${here.dataset.url}/results/${one.id}`;
  link.textContent = "change it";
  get("last").replaceChildren(`Last: ${one.id}: ${one.total} – `, link);
}

// ---- to the server -----------------------------------------------------------------------------

async function flush() {
  if (sending) return;
  sending = true;
  clearTimeout(timer);
  try {
    for (const one of state.queue.filter((waits) => !waits.wrong)) {
      try {
        await send("tell", { id: one.id, total: one.total, worker: one.worker });
        forget(one.id);
        if (!state.queue.length) taken(one);
      } catch (error) {
        if (!(error instanceof Problem) || error.status === 429 || error.status >= 500) throw error;
        if (error.status === 401 || error.status === 403) throw error;
        one.wrong = error.message;
        keep(each + one.id, one);
      }
    }
    pause = 0;
    await refill();
  } catch (error) {
    if (error instanceof Problem && (error.status === 401 || error.status === 403)) {
      get("queue-text").textContent = "The server does not know this browser any more: load the page anew, nothing is lost.";
      get("queue").hidden = false;
      return;
    }
    pause = Math.min(60000, pause ? 2 * pause : 2000);
    timer = setTimeout(flush, pause * (0.75 + Math.random() / 2));
  } finally {
    sending = false;
    draw();
  }
}

async function refill() {
  if (!state.worker || pending().length >= Math.max(1, Math.ceil(state.ahead / 2))) return;
  const said = await send("ask", { size: state.ahead, worker: state.worker, without: state.without });
  const told = new Set(state.queue.map((one) => one.id));
  state.pulls = said.pulls.filter((pull) => !told.has(pull.id)).map(({ id, members }) => ({ id, members }));
  get("waiting").textContent = said.waiting;
  save();
  if (!state.pulls.length) await ended();
}

// Nothing more to measure for now: is it over?
async function ended() {
  const answer = await fetch(`${api}/certificate`, { headers: { accept: "application/json" } });
  if (!answer.ok) return;
  const said = await answer.json();
  if (!said.certified) return;
  get("over").hidden = false;
  get("over-text").textContent = said.text;
  get("now").hidden = true;
  get("absent").hidden = true;
  refresh(`${here.dataset.url}/measure/live`).catch(() => {});
}

get("send").addEventListener("click", () => { pause = 0; flush(); });
window.addEventListener("online", () => { pause = 0; flush(); });
window.addEventListener("offline", drawQueue);
document.addEventListener("visibilitychange", () => { if (!document.hidden && state.queue.length) flush(); });
window.addEventListener("storage", () => { state.queue = keptTotals(); draw(); });

// Without a group, wait for others to finish the look, and ask again.
setInterval(() => {
  if (state.worker && !pending().length && !sending && !document.hidden && get("over").hidden) flush();
}, 15000);
get("again").addEventListener("submit", (event) => { event.preventDefault(); flush(); });

// ---- settings -----------------------------------------------------------------------------------

get("ahead-row").hidden = false;
get("ahead").value = String(state.ahead);
get("ahead").addEventListener("change", () => {
  state.ahead = Number(get("ahead").value);
  save();
  flush();
});

// These leave the page: what is kept goes with the device, what is held is asked for anew.
for (const id of ["absent-form", "stop"]) {
  get(id).addEventListener("submit", () => { state.pulls = []; save(); });
}

if (get("now").hidden) drawQueue();
else {
  draw();
  if (!matchMedia("(pointer: coarse)").matches) field.focus({ preventScroll: true });
}
if (state.queue.length || (state.worker && !get("now").hidden)) flush();
