// Questions over a terminal, on the dashboard and on a sandbox's own page.
import { h } from "../js/dom.js";
import { modal } from "../files/dialog.js";

// ask resolves to whether the person has agreed. The focus is on the button that does nothing. detail comes from the sandbox or
// the clipboard, and is shown as it is.
export async function ask({ title, text = "", detail = "", act }) {
  const id = "terminal-ask-title";
  const answer = await modal(id, h("form", { method: "dialog" },
    h("h2", { id }, title), text && h("p", {}, text), detail && h("pre", {}, detail),
    h("div", {}, h("button", { value: "", autofocus: true }, "Cancel"), h("button", { value: "yes" }, act))), "terminal-ask");
  return answer === "yes";
}
