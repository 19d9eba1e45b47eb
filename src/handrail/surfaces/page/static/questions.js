// Shows the waiting questions, oldest first, and takes the answers.

import { post } from "./api.js";
import { diffView } from "./diff.js";
import { baseName, clock, el, fill, newId, say } from "./dom.js";
import { on, openQuestions, sessionOf, store } from "./store.js";

const RECENT = 5;
const LONG = 14; // lines of a command that are shown without scrolling
const PLACES = { page: "on this page", here: "in the other place", gone: "", cancelled: "" };
let quietUntil = 0;

// Take no answer for a moment: what the user presses now was meant for what stood here before.
function beQuiet(host) {
  quietUntil = performance.now() + store.quiet * 1000;
  host.classList.add("quiet");
  setTimeout(() => {
    if (performance.now() >= quietUntil - 5) host.classList.remove("quiet");
  }, store.quiet * 1000 + 10);
}

export function questionsView() {
  const open = el("div", { class: "cards" });
  const done = el("ul", { class: "answered", "aria-label": "Answered questions" });
  const heading = el("h2", { id: "waiting" });
  const host = el("section", { class: "questions", "aria-labelledby": "waiting" }, heading, open, done);
  const cards = new Map();

  const update = (changed) => {
    const waiting = openQuestions();
    const ids = new Set(waiting.map((each) => each.id));
    let moved = false;
    for (const [id, card] of cards) {
      if (!ids.has(id)) {
        card.host.remove();
        cards.delete(id);
        moved = true;
      }
    }
    for (const question of waiting) {
      if (cards.has(question.id)) continue;
      const card = new Card(question);
      cards.set(question.id, card);
      open.append(card.host);
      moved = true;
      say(`New question: ${question.tool} in ${baseName(question.root)}`);
    }
    waiting.forEach((question, n) => cards.get(question.id).host.classList.toggle("current", n === 0));
    heading.textContent = waiting.length ? `${waiting.length} waiting` : "Nothing is waiting";
    host.classList.toggle("empty", waiting.length === 0);
    if (moved) beQuiet(host);
    if (changed?.state === "answered") say(outcome(changed));
    drawAnswered(done);
  };
  const stops = [
    on("questions", update),
    on("refused", ({ question, why }) => cards.get(question)?.tell(why)),
  ];
  const keys = (event) => takeKey(event, cards);
  document.addEventListener("keydown", keys);
  document.addEventListener("visibilitychange", () => beQuiet(host));
  update();
  return { host, end: () => [...stops, () => document.removeEventListener("keydown", keys)].forEach((stop) => stop()) };
}

function takeKey(event, cards) {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable], .xterm, dialog")) return;
  const key = event.key.toLowerCase();
  const first = openQuestions()[0];
  if (!first || !"ynsa".includes(key) || key.length !== 1) return;
  event.preventDefault();
  if (performance.now() < quietUntil) return;
  const card = cards.get(first.id);
  if (key === "y") card?.answer({ answer: "once" });
  else if (key === "n") card?.refuse();
  else if (key === "s") card?.keepForSession();
  else card?.edit();
}

class Card {
  constructor(question) {
    this.question = question;
    this.message = el("p", { class: "card-message", role: "alert" });
    this.actions = el("div", { class: "card-actions" });
    this.editor = el("div", { class: "card-editor" });
    const title = newId("question");
    const session = sessionOf(question.session);
    this.host = el("article", { class: `card risk-${question.risk}`, "aria-labelledby": title, "data-question": question.id },
      el("header", { class: "card-head" },
        el("h3", { id: title }, el("span", { class: "tool" }, question.tool), " ", el("span", { class: "dialect" }, question.dialect)),
        el("span", { class: "risk" }, question.risk.replace("_", " ")),
        el("p", { class: "card-where" },
          el("span", { class: "workspace", title: question.root }, baseName(question.root)),
          session.client && el("span", {}, session.client),
          el("time", {}, clock(question.time)))),
      this.body(),
      this.message, this.actions, this.editor);
    this.drawActions();
  }

  body() {
    const question = this.question;
    const load = (split, start, count) => post("/api/diff", { question: question.id, split, start, count });
    const careful = question.facts.filter(([name]) => name === "Careful");
    const facts = question.facts.filter(([name]) => name !== "Careful");
    const lines = question.command.split("\n").length;
    return el("div", { class: "card-body" },
      careful.map(([, value]) => el("p", { class: "careful" }, value)),
      question.command && el("pre", { class: "command", tabindex: 0, "aria-label": question.terminal ? `Typed into terminal ${question.terminal}` : "Command" }, question.command),
      lines > LONG && el("p", { class: "careful" }, `The command has ${lines} lines: scroll to read all of them.`),
      diffView(question.diff, load, { cut: question.diff_cut }),
      facts.length > 0 && el("dl", { class: "facts" }, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
      this.params());
  }

  params() {
    const { params, command } = this.question;
    const others = params.filter(([, value]) => value !== command);
    if (!others.length) return null;
    const rows = others.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
    const open = !command && !this.question.diff.unified;
    return el("details", { class: "params", open }, el("summary", {}, "Parameters"), el("dl", { class: "facts" }, rows));
  }

  drawActions() {
    const { keeps, why_nothing_kept: why } = this.question;
    const reason = newId("reason");
    this.reason = el("input", { id: reason, type: "text", class: "reason", maxlength: 2000, autocomplete: "off", placeholder: "Reason for the agent",
      "aria-label": "Reason for the agent", onkeydown: (event) => event.key === "Enter" && this.refuse() });
    const button = (name, key, style, work, about) =>
      el("button", { type: "button", class: style, "aria-keyshortcuts": key, title: about, onclick: () => this.guarded(work) }, name, " ", el("kbd", { "aria-hidden": "true" }, key));
    fill(this.actions,
      el("div", { class: "allow" },
        button("Allow once", "y", "primary", () => this.answer({ answer: "once" })),
        keeps.session && button("For this session", "s", "", () => this.keepForSession(), keeps.session.sentence),
        keeps.always && button("Always…", "a", "", () => this.edit(), keeps.always.sentence)),
      el("div", { class: "deny" }, this.reason, button("Deny", "n", "danger", () => this.refuse())),
      el("p", { class: "keeps" }, keeps.session ? `For this session allows: ${keeps.session.sentence.replace(/^in this session: /, "")}` : why && `No rule can be kept: ${why}`));
  }

  // A click right after the cards moved was meant for another one.
  guarded(work) {
    if (performance.now() >= quietUntil) work();
  }

  refuse() {
    this.answer({ answer: "no", reason: this.reason.value });
  }

  keepForSession() {
    if (this.question.keeps.session) this.answer({ answer: "session" });
    else this.tell(`No rule can be kept: ${this.question.why_nothing_kept}`);
  }

  async answer(body) {
    if (this.sent) return;
    this.sent = true;
    this.host.classList.add("sent");
    this.tell("");
    try {
      await post("/api/answer", { question: this.question.id, ...body });
    } catch (error) {
      this.tell(error.message);
    }
  }

  tell(why) {
    this.message.textContent = why;
    if (why) {
      this.sent = false;
      this.host.classList.remove("sent");
    }
  }

  edit() {
    const { always } = this.question.keeps;
    if (!always) return this.tell(`No rule can be kept: ${this.question.why_nothing_kept}`);
    const ids = [newId("rule"), newId("scope"), newId("hours"), newId("says")];
    const rule = el("input", { id: ids[0], type: "text", class: "rule", value: always.rule, placeholder: "exactly this call", spellcheck: "false",
      autocomplete: "off", "aria-describedby": ids[3] });
    const scope = el("select", { id: ids[1] }, el("option", { value: "project" }, "in this project"), el("option", { value: "user" }, "in all projects"));
    const hours = el("select", { id: ids[2] }, el("option", { value: "" }, "until I remove it"), el("option", { value: "8" }, "for 8 hours"), el("option", { value: "168" }, "for 7 days"));
    const says = el("p", { id: ids[3], class: "says", role: "status" }, always.sentence);
    const keep = () => this.answer({ answer: "always", rule: rule.value, scope: scope.value, hours: hours.value ? Number(hours.value) : null });
    const check = () => this.check(rule.value, says);
    let timer = 0;
    rule.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(check, 150);
    });
    const close = () => {
      this.editor.replaceChildren();
      this.actions.hidden = false;
      this.host.querySelector(".allow button").focus();
    };
    const form = el("div", { class: "rule-form", onkeydown: (event) => {
      if (event.key === "Enter" && event.target === rule) keep();
      if (event.key === "Escape") close();
    } },
      el("label", { for: ids[0] }, "Always allow"), rule, says,
      el("div", { class: "rule-row" }, el("label", { for: ids[1], class: "hidden-text" }, "Where"), scope, el("label", { for: ids[2], class: "hidden-text" }, "How long"), hours,
        el("button", { type: "button", class: "primary", onclick: keep }, "Allow and keep this rule"),
        el("button", { type: "button", onclick: close }, "Back")));
    this.actions.hidden = true;
    fill(this.editor, form);
    rule.focus();
    rule.select();
  }

  async check(text, says) {
    if (!text.trim()) return void (says.textContent = "exactly this call");
    try {
      const found = await post("/api/rule", { question: this.question.id, rule: text });
      says.textContent = found.says;
      says.classList.toggle("wrong", !found.covers);
    } catch (error) {
      says.textContent = error.message;
    }
  }
}

function outcome(question) {
  const { allowed, place, reason } = question.answered;
  if (place === "gone") return "The program that asked has ended";
  if (allowed === undefined || allowed === null) return "Cancelled";
  const what = allowed ? "Allowed" : "Not allowed";
  return `${what} ${PLACES[place] ?? place}${!allowed && reason ? `: ${reason}` : ""}`;
}

function drawAnswered(host) {
  const done = [...store.questions.values()].filter((each) => each.state === "answered").sort((a, b) => b.answered.at - a.answered.at);
  fill(host, done.slice(0, RECENT).map((question) =>
    el("li", { class: question.answered.allowed ? "yes" : "no" },
      el("time", {}, clock(question.answered.at)),
      el("span", { class: "tool" }, question.tool),
      el("span", { class: "about" }, question.command || question.targets.join(", ") || baseName(question.root)),
      el("span", { class: "outcome" }, outcome(question)))));
}
