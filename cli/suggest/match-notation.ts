import type { MatchInput } from "../../src/config/match.ts";
import { METHODS } from "../../src/explain/methods.ts";
import { RefusedOption } from "./refused-option.ts";

const NOTATION = `Allowed: methods, hosts and paths, such as 'POST /login', 'GET,HEAD api.example.com /search/*' or '/a, /b'; or the JSON of a rule's match.`;

/**
 * Reads the value of `--match`: methods, hosts and paths, separated by spaces or commas, or the JSON of a
 * rule's `match`. It only tells the three apart; `defineConfig` checks each of them.
 *
 * @throws {RefusedOption}
 */
export function parseMatch(text: string): MatchInput {
  if (text.trimStart().startsWith("{")) return parseJsonMatch(text);
  const [methods, hosts, paths]: string[][] = [[], [], []];
  for (const word of wordsOf(text)) {
    if (word.startsWith("/")) paths?.push(word);
    else if (METHODS.includes(word.toUpperCase())) methods?.push(word);
    else if (/^[A-Za-z]+$/.test(word) && word !== "localhost")
      throw new RefusedOption(wordFault(word));
    else if (word.includes("/")) throw new RefusedOption(urlFault(word));
    else hosts?.push(word);
  }
  const lists = Object.entries({ methods, hosts, paths }).filter(([, list]) => list?.length);
  if (lists.length === 0) throw new RefusedOption(`--match is empty. ${NOTATION}`);
  return Object.fromEntries(lists);
}

function parseJsonMatch(text: string): MatchInput {
  try {
    // `defineConfig` checks the form.
    return JSON.parse(text);
  } catch {
    throw new RefusedOption(`--match begins with { but is not valid JSON. ${NOTATION}`);
  }
}

function wordFault(word: string): string {
  return `--match has ${JSON.stringify(word)}, which is not a method. For a path, write '/${word}'. ${NOTATION}`;
}

function urlFault(word: string): string {
  const [, host = "", path = ""] = /^(?:https?:\/\/)?([^/]*)(\/.*)?$/.exec(word) ?? [];
  const cure = host === "" ? "" : ` Write the host and the path apart: '${host} ${path || "/*"}'.`;
  return `--match has ${JSON.stringify(word)}, which is neither a path nor a host.${cure} ${NOTATION}`;
}

/** Splits at spaces and commas, but not within braces: a path may have a pattern, such as `/:id{[0-9]{1,5}}`. */
function wordsOf(text: string): string[] {
  const words: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index <= text.length; index++) {
    const character = text[index];
    if (character === "{") depth++;
    if (character === "}") depth--;
    const isEnd = character === undefined || (depth <= 0 && /[\s,]/.test(character));
    if (!isEnd) continue;
    if (index > start) words.push(text.slice(start, index));
    start = index + 1;
  }
  return words;
}
