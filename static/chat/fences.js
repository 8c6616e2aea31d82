// Finds the fenced blocks of code in Markdown, just as internal/coderun does: a block's number means the same code in both. fence_cases.json
// tests both.

const opening = /^( {0,3})(`{3,}|~{3,})([^]*)$/;
const listed = /^ {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?: {1,4}|$)/;
const indent = (line) => /^ */.exec(line)[0].length;
const untab = (line) => line.replace(/^[ \t]+/, (lead) => lead.replaceAll("\t", "    "));

// Fences goes through a text line by line. open says whether the last line was within a block.
export class Fences {
  blocks = []; // {language, code, from, to}: to is after the block's last line
  open = false;
  #items = []; // where the contents of the list items begin that are open
  #at = 0;

  // line takes the next line, with its line break.
  line(raw) {
    const from = this.#at;
    this.#at += raw.length;
    const line = untab(raw.replace(/\r?\n?$/, ""));
    const blank = /^[ \t]*$/.test(line); // other spaces are none in Markdown, and are not the same in JavaScript and Go
    if (this.open) {
      if (this.base > 0 && !blank && indent(line) < this.base) this.#end(from); // the list item ends, and its block with it
      else if (this.#closes(line)) return this.#end(this.#at);
      else return this.lines.push(line.slice(Math.min(indent(line), this.strip)));
    }
    if (!blank) this.#outside(line, from);
  }

  #closes(line) {
    const mark = line.slice(this.base).replace(/[ \t]+$/, "");
    const n = indent(mark);
    return n <= 3 && mark.length - n >= this.fence.length && mark.slice(n) === this.fence[0].repeat(mark.length - n);
  }

  #outside(line, from) {
    const column = indent(line);
    while (column < this.#items.at(-1)) this.#items.pop();
    let at = this.#items.at(-1) ?? 0;
    for (let mark = listed.exec(line.slice(at)); mark; mark = listed.exec(line.slice(at))) {
      at += mark[0].length;
      this.#items.push(at);
    }
    const [, lead, fence, rest] = opening.exec(line.slice(at)) ?? [];
    if (!fence || (fence[0] === "`" && rest.includes("`"))) return;
    Object.assign(this, { fence, base: at, strip: at + lead.length, lines: [], open: true });
    this.blocks.push({ language: languageOf(rest), code: "", from, to: from });
  }

  #end(to) {
    Object.assign(this.blocks.at(-1), { code: this.lines.join("\n"), to });
    this.open = false;
  }

  // finish ends the text, and returns the blocks.
  finish() {
    if (!this.open) return this.blocks;
    this.#end(this.#at);
    return this.blocks;
  }
}

const languageOf = (rest) => rest.split(/[ \t{},:]+/).find(Boolean)?.toLowerCase() ?? "";

// linesOf gives the lines of a text, each with its line break.
export function* linesOf(text) {
  for (let at = 0, end; at < text.length; at = end) {
    end = text.indexOf("\n", at) + 1 || text.length;
    yield text.slice(at, end);
  }
}

// fencesOf finds the blocks of a whole text.
export function fencesOf(text) {
  const fences = new Fences();
  for (const line of linesOf(text.replace(/\r\n?/g, "\n"))) fences.line(line);
  return fences.finish();
}

// numberOf gives the number of the block of a whole text that begins at a place and has that code; -1 for none.
export const numberOf = (text, at, code) => fencesOf(text).findIndex((b) => b.from === at && b.code === code);
