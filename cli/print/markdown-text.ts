import { printable } from "../doctor/finding.ts";

/** The maximum length of a text from a log in a table, in characters. */
const MAX_LENGTH = 100;

/**
 * Characters that Markdown or HTML may read as more than themselves. A colon before a space or in a time begins no
 * link.
 */
const SPECIAL = /(?!: |(?<=\d):\d\d(?![\d:]))[^\p{L}\p{N} ./,;()%'"-]/gu;

/** Splits a text. Without it, GitHub's Markdown finds mail addresses and URLs even in references and in `<code>`. */
const SPLIT = "<!-- -->";

/**
 * Returns a text of a log as code that GitHub prints as it is, in a table too. In `<code>`, GitHub does not link
 * @names, #numbers and commits. Backquotes would not be enough, because the text may contain them.
 *
 * @param maxLength in characters; the rest is cut off
 */
export function markdownCode(text: string, maxLength = MAX_LENGTH): string {
  const clean = printable(text);
  const shown = clean.length > maxLength ? `${clean.slice(0, maxLength).trimEnd()}...` : clean;
  return shown === "" ? "" : `<code>${escaped(shown)}</code>`;
}

/** Returns a sentence in which Markdown and HTML read no character as more than itself. */
export function markdownText(text: string): string {
  return (
    escaped(printable(text))
      // Outside of code, GitHub links @names and #numbers.
      .replace(/(?:<!-- -->)?(&#64;|&#35;)/g, "<code>$1</code>")
      // At the start of a line, they would begin a list.
      .replace(/^[-.]/, reference)
      .replace(/^(\d+)([.)])/, (_, number, sign) => `${number}${reference(sign)}`)
  );
}

function escaped(text: string): string {
  return text
    .replace(SPECIAL, (character) =>
      character === "@" || character === ":" ? SPLIT + reference(character) : reference(character),
    )
    .replace(/www\./gi, (start) => `${start.slice(0, 3)}${SPLIT}.`);
}

function reference(character: string): string {
  return `&#${character.codePointAt(0)};`;
}
