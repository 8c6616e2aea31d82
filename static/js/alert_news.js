// Shows alerts that begin to fire as a toast. Live updates bring them into #alert-news.
import { toast } from "./toast.js";

// newsText says what several alerts are in the space of one.
export function newsText(texts) {
  if (texts.length < 2) return texts[0] ?? "";
  return `${texts[0]} – and ${texts.length - 1} more`;
}

function look() {
  const news = document.getElementById("alert-news");
  if (!news?.firstElementChild) return;
  const texts = [...news.children].map((item) => item.textContent.trim());
  const { url } = news.firstElementChild.dataset;
  news.replaceChildren();
  toast(newsText(texts), { bad: true, action: { text: "Show", act: () => location.assign(url) } });
}

globalThis.document?.addEventListener("sandboxd:parts", look);
