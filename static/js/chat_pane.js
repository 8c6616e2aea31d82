// <sandbox-chat>: the chat pane. Its code is loaded when the pane is first seen.
import "../css/chat.css";
import { h, icon } from "./dom.js";

class SandboxChat extends HTMLElement {
  #chat = null;
  #seen = null;

  connectedCallback() {
    this.#seen = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && this.#begin());
    this.#seen.observe(this);
  }

  disconnectedCallback() {
    this.#seen?.disconnect();
    this.#chat?.dispose();
    this.#chat = null;
  }

  // take takes over what a newer version of the pane says.
  take(data) {
    Object.assign(this.dataset, data);
    this.#chat?.refresh();
  }

  // open shows one conversation.
  open(id) {
    if (this.#chat) return this.#chat.open(id);
    sessionStorage.setItem(`chat ${this.dataset.box}`, id); // what the chat begins with
  }

  async #begin() {
    this.#seen.disconnect();
    try {
      const { Chat } = await import("../chat/chat.js");
      if (this.isConnected && !this.#chat) this.#chat = new Chat(this);
    } catch { // the browser remembers that
      this.replaceChildren(h("p", { class: "chat-warn", role: "alert" }, icon("warn"), h("span", {}, "The chat has not loaded. Look at your connection, then ", h("a", { href: "" }, "load the page again"), ".")));
    }
  }
}

customElements.define("sandbox-chat", SandboxChat);

// The chat stays in the page, as it is, when the state of its sandbox changes.
document.addEventListener("htmx:partialBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  const chat = target.querySelector?.(":scope > sandbox-chat");
  const next = fragment.firstElementChild?.querySelector(":scope > sandbox-chat");
  if (!chat || chat.dataset.box !== next?.dataset.box) return;
  event.detail.shouldSwap = false;
  target.dataset.state = fragment.firstElementChild.dataset.state;
  chat.take({ ...next.dataset });
});

// arrive opens the conversation that a link to the workspace names.
function arrive() {
  const id = /^#chat=([0-9a-f]{16})$/.exec(location.hash)?.[1];
  if (!id) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  document.querySelector("sandbox-chat")?.open(id);
  document.dispatchEvent(new CustomEvent("sandboxd:show", { detail: "chat" }));
}

addEventListener("hashchange", arrive);
setTimeout(arrive); // once the panes listen
