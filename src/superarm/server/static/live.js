// Live numbers: the server says that something is new, and the page's parts are fetched again.
// Parts are elements with data-part; the server renders them, so there is one way of drawing them.

const LEAST_PAUSE = 1500; // milliseconds between two renewals, however fast results come in

let drawn = () => {};

export function say(text) {
  const news = document.getElementById("news");
  if (text && news.textContent !== text) news.textContent = text;
}

// `asked`: somebody wants to see this now, so that it may take the place of what has the focus.
export async function refresh(address, asked = false) {
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (answer.redirected || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = document.getElementById(part.id);
    // What somebody is typing into, or reading as a table, is not taken away.
    if (!old || old.outerHTML === part.outerHTML || (busy(old) && !asked)) continue;
    keepOpen(old, part);
    if (old.textContent !== part.textContent) part.classList.add("fresh");
    old.replaceWith(part);
    if (part.dataset.say && part.dataset.say !== old.dataset.say) say(part.dataset.say);
  }
  drawn(document);
}

function busy(part) {
  const here = document.activeElement;
  return here !== document.body && part.contains(here);
}

function keepOpen(old, part) {
  const now = part.querySelectorAll("details");
  old.querySelectorAll("details").forEach((one, i) => {
    if (now[i]) now[i].open = one.open;
  });
}

export function follow(whenDrawn) {
  drawn = whenDrawn;
  const main = document.getElementById("main");
  if (!main.dataset.events || !main.dataset.live) return;
  let due = 0;
  let last = 0;
  let told = null;
  const renew = () => {
    due = 0;
    last = Date.now();
    const form = document.getElementById("arms-form");
    const query = form ? `?${new URLSearchParams(new FormData(form))}` : "";
    refresh(main.dataset.live + query).catch(() => {});
  };
  const news = (event) => {
    if (event.data === told) return;
    const now = JSON.parse(event.data);
    // The first news may be no news: what the page was drawn with.
    const same = told === null && main.dataset.seen === [now.told, now.open, now.missing].join("/");
    told = event.data;
    if (same || due) return;
    due = setTimeout(renew, Math.max(200, LEAST_PAUSE - (Date.now() - last)));
  };
  let source = null;
  const open = () => {
    source = new EventSource(main.dataset.events);
    source.addEventListener("status", news);
    source.addEventListener("gone", () => source.close());
  };
  open();
  // A page that nobody sees holds no connection; browsers allow few to one server.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) source.close();
    else if (source.readyState === EventSource.CLOSED) { open(); renew(); }
  });
  window.addEventListener("pagehide", () => source.close());
}
