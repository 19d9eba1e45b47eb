// Lists the rules of a workspace, says which one would decide a call, and switches and removes them.

import { post } from "./api.js";
import { day, el, fill, newId, say } from "./dom.js";
import { workspaceChoice } from "./workspaces.js";

export function rulesView() {
  let workspace = "";
  const list = el("ul", { class: "rules" });
  const blank = el("p", { class: "blank" }, "No workspace is known yet.");
  const message = el("p", { class: "card-message", role: "alert" });
  const result = el("div", { class: "trial-result", role: "status" });
  const id = newId("call");
  const call = el("input", { id, type: "text", class: "rule trial", placeholder: "git push origin", spellcheck: "false", autocomplete: "off",
    onkeydown: (event) => event.key === "Enter" && test() });
  const choice = workspaceChoice((path) => {
    workspace = path;
    fill(result);
    load();
  });
  const host = el("section", { "aria-labelledby": "rules" },
    el("div", { class: "section-head" }, el("h2", { id: "rules", tabindex: -1 }, "Rules"), choice.host),
    el("div", { class: "trial-form" },
      el("label", { for: id }, "Which rule would decide a call?"),
      el("div", { class: "trial-row" }, call, el("button", { type: "button", class: "test-call", onclick: () => test() }, "Test")),
      el("p", { class: "says" }, "Write it as a rule: git push origin, edit src/a.py, fetch docs.python.org; or a tool with its parameters as JSON. The call changes nothing."),
      result),
    message, blank, list);

  async function load() {
    try {
      draw(await post("/api/rules", { workspace }));
      message.textContent = "";
    } catch (error) {
      fill(list);
      blank.textContent = "";
      message.textContent = error.message;
    }
  }

  async function change(rule, act) {
    try {
      draw(await post("/api/rule-change", { workspace, same: rule.same, do: act }));
      message.textContent = "";
      say(`Rule ${rule.rule}: ${act}d`);
      (list.querySelector(`[data-place="${rule.scope} ${rule.number}"] button`) ?? host.querySelector("h2")).focus();
    } catch (error) {
      await load();
      message.textContent = error.message;
    }
  }

  async function test() {
    if (!call.value.trim()) return;
    fill(result, el("p", { class: "blank" }, "Testing…"));
    const found = await post("/api/rule-test", { workspace, call: call.value }).catch((error) => ({ says: error.message, others: [], wrong: true }));
    fill(result, el("p", { class: found.wrong ? "careful" : "verdict" }, found.says),
      found.others.length > 0 && el("ul", { class: "others" }, found.others.map((each) => el("li", {}, `not ${each}`))));
  }

  function draw({ rules }) {
    blank.textContent = rules.length ? "" : "No rules. “Always…” on a question stores one.";
    fill(list, rules.map((rule) => row(rule, change)));
  }

  return { host, end: () => choice.end() };
}

function row(rule, change) {
  const state = rule.expired ? "expired" : rule.enabled ? "on" : "off";
  const about = [state, rule.until && !rule.expired && `until ${day(rule.until)}`, rule.sandbox && `in sandbox ${rule.sandbox}`, rule.unattended && "unattended",
    rule.stored && (rule.used ? `used ${rule.used === 1 ? "once" : `${rule.used} times`}, last ${rule.last}` : "never used")];
  const button = (name, act) => el("button", { type: "button", class: `small ${act}`, "aria-label": `${name}: ${rule.rule}`, onclick: () => change(rule, act) }, name);
  return el("li", { class: `rule-item is-${state}`, "data-rule": rule.rule, "data-place": `${rule.scope} ${rule.number}` },
    el("div", { class: "rule-what" },
      el("code", {}, rule.rule), " ", rule.deny && el("span", { class: "risk denies" }, "deny"),
      el("p", {}, rule.sentence),
      el("p", { class: "says" }, about.filter(Boolean).join(" · "))),
    rule.stored && el("div", { class: "rule-buttons" },
      rule.enabled ? button("Disable", "disable") : button("Enable", "enable"),
      removal(rule, change)));
}

// Removing takes two clicks, for nothing brings a rule back.
function removal(rule, change) {
  let sure = false;
  const ask = (next) => {
    sure = next;
    button.textContent = sure ? "Remove for good" : "Remove";
  };
  const button = el("button", { type: "button", class: "small remove danger", "aria-label": `Remove: ${rule.rule}`, onblur: () => ask(false), onclick: () => (sure ? change(rule, "remove") : ask(true)) }, "Remove");
  return button;
}
