// <sandbox-chat>: the chat pane. Its code is loaded when the pane is first seen.
import "../css/chat.css";
import { toast } from "./toast.js";

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

  async #begin() {
    this.#seen.disconnect();
    try {
      const { Chat } = await import("../chat/chat.js");
      if (this.isConnected && !this.#chat) this.#chat = new Chat(this);
    } catch (err) {
      toast(`The chat has not loaded: ${err.message}`, { bad: true });
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
