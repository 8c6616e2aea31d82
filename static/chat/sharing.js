// Links by which others can read a conversation.
import { button, h, icon } from "../js/dom.js";
import { copy } from "../js/clipboard.js";
import { closeButton, modal } from "../files/dialog.js";

const lengths = { "24h": "1 day", "7d": "7 days", "30d": "30 days", never: "Never expires" };

// share shows the links of a conversation until its dialog is closed. api is a Conversations; fail(err) says what went wrong.
export function share(api, id, fail) {
  const list = h("ul", { class: "chat-links", "aria-label": "Links" });
  const made = h("div", { class: "chat-link-made" });
  const ttl = h("select", { class: "input", "aria-label": "How long the link works" }, Object.entries(lengths).map(([value, text]) => h("option", { value, selected: value === "7d" }, text)));
  const trying = (act) => act().catch(fail);

  const draw = async () => {
    const { links } = await api.links(id);
    list.replaceChildren(...links.map((l) => h("li", {}, h("span", {}, `Made ${when(l.created_at)} · ${l.expires_at ? `works until ${when(l.expires_at)}` : "never expires"}`),
      button("", "", () => trying(async () => {
        await api.revokeLink(id, l.id);
        made.replaceChildren();
        await draw();
        ttl.focus(); // the button is gone
      }), { text: "Revoke", kind: "low", "aria-label": `Revoke the link made ${when(l.created_at)}` }))));
    if (!links.length) list.replaceChildren(h("li", { class: "quiet" }, "No links yet"));
  };
  const make = () => trying(async () => {
    const { url } = await api.makeLink(id, ttl.value);
    const field = h("input", { class: "input mono", readonly: true, value: url, "aria-label": "Link" });
    made.replaceChildren(field, button("", "", async (event) => {
      await copy(url);
      event.target.textContent = "Copied";
    }, { text: "Copy", kind: "" }), h("p", { class: "quiet" }, "Copy it now: it is not shown again."));
    field.select();
    await draw();
  });
  trying(draw);
  return modal("chat-share", h("form", { method: "dialog", class: "sheet" },
    h("div", { class: "sheet-head" }, h("div", {}, h("h2", { id: "chat-share" }, "Share this conversation"), h("p", { class: "quiet" }, "Anyone with the link can read it, without signing in, and what is said from now on. They see commands, files and output that are in it, and nothing else.")), closeButton()),
    h("div", { class: "chat-link-new" }, h("span", { class: "select" }, ttl, icon("down")), button("link", "", make, { text: "Create link", kind: "primary" })), made, list));
}

const when = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
