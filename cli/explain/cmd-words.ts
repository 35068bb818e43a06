import { wrongOptions } from "../admin/admin-error.ts";
import type { CommandWords } from "./shell-words.ts";

/**
 * Whether a command is written for cmd.exe, as browsers copy it on Windows: lines that end with `^`, and
 * `^"` as quotes.
 */
export function isForCmd(text: string): boolean {
  const first = /'|\^?"|\^\r?\n|\\\r?\n/.exec(text)?.[0] ?? "";
  return first.startsWith("^") || (first === '"' && /\^\r?\n/.test(text) && !/\\\r?\n/.test(text));
}

/** Splits a command for cmd.exe into words. Variables (`%NAME%`) are kept as text. */
export function cmdWords(text: string): CommandWords {
  const { line, rest } = cmdLine(text);
  return { words: argumentsOf(line), endsAtAmpersand: /^&[^\s&]/.test(rest) };
}

/** Returns the line that cmd.exe passes to a program, without escapes such as `^&`, and the text after its end. */
function cmdLine(text: string): { line: string; rest: string } {
  let line = "";
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '"') isQuoted = !isQuoted;
    if (isQuoted || !/[\^&|<>\r\n]/.test(char)) {
      line += char;
      continue;
    }
    if (char !== "^") return { line, rest: text.slice(at, at + 2) };
    // `^` at the end of a line joins it with the next line, whose first character is escaped then.
    if (text.startsWith("\r\n", at + 1)) at += 2;
    else if (text.startsWith("\n", at + 1)) at++;
    at++;
    line += text.charAt(at);
  }
  return { line, rest: "" };
}

/** Splits a line as programs for Windows do. A backslash escapes only a quote. */
function argumentsOf(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let isQuoted = false;
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at);
    if (!isQuoted && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    word ??= "";
    if (char === "\\") {
      let end = at + 1;
      while (line.charAt(end) === "\\") end++;
      const count = end - at;
      const isBeforeQuote = line.charAt(end) === '"';
      word += "\\".repeat(isBeforeQuote ? Math.floor(count / 2) : count);
      const escapesQuote = isBeforeQuote && count % 2 === 1;
      if (escapesQuote) word += '"';
      at = escapesQuote ? end : end - 1;
    } else if (char !== '"') {
      word += char;
    } else if (isQuoted && line.charAt(at + 1) === '"') {
      word += '"';
      at++;
    } else {
      isQuoted = !isQuoted;
    }
  }
  if (isQuoted) {
    throw wrongOptions(
      'The curl command has a " without the quote that closes it. Copy the whole command.',
    );
  }
  if (word !== undefined) words.push(word);
  return words;
}
