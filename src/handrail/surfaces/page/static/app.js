// Starts the page: enters, follows the events, and shows the view that the address names.

import { enter, follow } from "./api.js";
import { callsView } from "./calls.js";
import { el, fill } from "./dom.js";
import { doctorView } from "./doctor.js";
import { historyView } from "./history.js";
import { questionsView } from "./questions.js";
import { rulesView } from "./rules.js";
import { terminalsView } from "./terminals.js";
import { on, openQuestions, take } from "./store.js";

const main = document.getElementById("main");
const tabs = document.getElementById("tabs");
const link = document.getElementById("link");
const VIEWS = [
  ["now", "Now", () => joined(questionsView(), callsView())],
  ["history", "History", () => joined(historyView())],
  ["terminals", "Terminals", () => joined(terminalsView())],
  ["rules", "Rules", () => joined(rulesView())],
  ["doctor", "Doctor", () => joined(doctorView())],
];
const STATES = {
  open: "Connected",
  waiting: "Connecting…",
  lost: "The server does not answer. If it has ended, start it again with `handrail page`, and open the new address.",
  closed: "This window is not known to the server. Open the address that `handrail page` prints.",
};
let shown = null;

function joined(...views) {
  return { hosts: views.map((each) => each.host), end: () => views.forEach((each) => each.end()) };
}

function show() {
  const wanted = location.hash.slice(1);
  const [name, , make] = VIEWS.find(([each]) => each === wanted) ?? VIEWS[0];
  shown?.end();
  shown = make();
  fill(main, shown.hosts);
  for (const tab of tabs.querySelectorAll("a")) {
    if (tab.dataset.view === name) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
}

function drawTabs() {
  fill(tabs, VIEWS.length > 1 && VIEWS.map(([name, title]) => el("li", {}, el("a", { href: `#${name}`, "data-view": name }, title, name === "now" && el("span", { class: "count", id: "count" })))));
}

function count() {
  const waiting = openQuestions().length;
  document.title = waiting ? `(${waiting}) Handrail` : "Handrail";
  const badge = document.getElementById("count");
  if (badge) badge.textContent = waiting ? String(waiting) : "";
}

function tellLink(state) {
  if (link.dataset.state === state) return;
  link.dataset.state = state;
  link.textContent = STATES[state];
  document.body.classList.toggle("cut-off", state === "lost" || state === "closed");
}

async function begin() {
  let entered = false;
  try {
    entered = await enter();
  } catch (error) {
    return fill(main, el("p", { class: "blank" }, error.message));
  }
  if (!entered) return fill(main, el("p", { class: "blank" }, STATES.closed));
  drawTabs();
  tellLink("waiting");
  const stop = on("state", () => {
    stop();
    show();
    addEventListener("hashchange", show);
  });
  on("questions", count);
  follow(take, tellLink);
}

begin();
