import { printable } from "../doctor/finding.ts";

/** The maximum length of a text from a log in a table, in characters. */
const MAX_LENGTH = 100;

/**
 * Returns a text of a log as code that GitHub prints as it is, in a table too. In `<code>`, GitHub does not link
 * @names, #numbers and commits. Backquotes would not be enough, because the text may contain them. All characters
 * that Markdown or HTML could read as more than themselves become character references.
 */
export function markdownCode(text: string, maxLength = MAX_LENGTH): string {
  const clean = printable(text);
  const shown = clean.length > maxLength ? `${clean.slice(0, maxLength).trimEnd()}...` : clean;
  return shown === "" ? "" : `<code>${escaped(shown)}</code>`;
}

/** Returns a sentence in which Markdown and HTML read no character as more than itself. */
export function markdownText(text: string): string {
  return escaped(printable(text));
}

function escaped(text: string): string {
  return (
    text
      .replace(/(?!: )[^\p{L}\p{N} ./,;()%'"-]/gu, (character) => `&#${character.codePointAt(0)};`)
      // GitHub links addresses that begin with www.
      .replace(/www\./gi, (start) => `${start.slice(0, 3)}&#46;`)
      // At the start of a line, it would begin a list.
      .replace(/^[-.]/, (character) => `&#${character.codePointAt(0)};`)
  );
}
