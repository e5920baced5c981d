// What every page does beyond plain HTML: the theme, live numbers, the margin's readout, the arms.

import { follow, refresh, say } from "./live.js";
import { readouts } from "./margin.js";

const root = document.documentElement;
const themes = ["system", "light", "dark"];

function theme() {
  const button = document.getElementById("theme");
  const show = () => {
    const text = `Theme: ${root.dataset.theme ?? "system"}`;
    button.querySelector("span").textContent = text;
    button.setAttribute("aria-label", text);
  };
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme ?? "system") + 1) % themes.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      if (next === "system") localStorage.removeItem("superarm:theme");
      else localStorage.setItem("superarm:theme", next);
    } catch {
      // Without storage it lasts until the page is left.
    }
    show();
  });
}

function arms() {
  const form = document.getElementById("arms-form");
  if (!form) return;
  let timer = 0;
  const query = () => new URLSearchParams(new FormData(form));
  const show = () => refresh(`${form.dataset.parts}?${query()}`, true);
  document.getElementById("arms-go").hidden = true;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 150);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); show(); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#arms-all");
    if (!link) return;
    event.preventDefault();
    document.getElementById("show").value = new URL(link.href).searchParams.get("show");
    show().then(() => document.querySelector("#arms .wide")?.focus());
  });
}

function forecast() {
  const form = document.getElementById("question");
  if (!form) return;
  let timer = 0;
  let asked = 0;
  document.getElementById("forecast-go").hidden = true;
  const ask = async () => {
    const mine = ++asked;
    const body = new URLSearchParams([...new FormData(form)].filter(([, value]) => typeof value === "string"));
    try {
      const answer = await fetch(form.dataset.forecast, { method: "POST", body });
      const found = await answer.json();
      if (mine !== asked) return;
      document.getElementById("cost").textContent = found.text;
      document.getElementById("cost-more").textContent = found.more;
    } catch {
      // No connection: the last forecast stays.
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 300);
  });
  document.getElementById("file").addEventListener("change", async (event) => {
    const file = event.target.files[0];
    if (!file) return;
    document.getElementById("arms").value = await file.text();
    event.target.value = "";
    ask();
  });
}

function printing() {
  const button = document.getElementById("print");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}

theme();
arms();
forecast();
printing();
readouts(document);
follow(readouts, say);
