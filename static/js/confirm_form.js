// Asks in a dialog whether a form is to be sent. It is loaded when it is needed.
import { confirm } from "../files/dialog.js";

// ask sends a form if the person agrees to what its data-confirm asks.
export async function ask(form, submitter) {
  const question = form.dataset.confirm;
  const [, title, text] = /^(.*?\?)\s*(.*)$/s.exec(question) ?? ["", question, ""];
  const act = submitter?.textContent.trim().replace(/…$/, "") || "Continue";
  if (!(await confirm({ title, text, act }))) return;
  if (!form.isConnected) document.body.append(Object.assign(form, { hidden: true })); // the page was brought up to date meanwhile
  delete form.dataset.confirm;
  form.requestSubmit(submitter);
  form.dataset.confirm = question;
}
