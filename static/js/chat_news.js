// What agents do in the person's conversations. Live updates bring it into #chat-news; the code that tells of it is loaded then.
function look() {
  const news = document.getElementById("chat-news");
  if (!news?.firstElementChild) return;
  const list = [...news.children].map((item) => ({ text: item.textContent, ...item.dataset }));
  news.replaceChildren();
  import("../chat/notify.js").then(({ notify }) => list.forEach(notify), () => {}); // the list of sandboxes says it too
}

globalThis.document?.addEventListener("sandboxd:parts", look);
