import {
  decodeEscapeRun,
  decodeEscapes,
  decodeNonStandard,
  foldText,
  hasDecodableEscapes,
} from "./text-folding.ts";

/** How often escapes are decoded. Most origins decode once, and careless ones decode twice. */
const DECODE_ROUNDS = 3;

/**
 * Decodes one level of escapes. Repeated `%25` counts as one level at any depth, because decoding deep
 * nesting level by level would take long.
 */
export function decodeLevel(text: string): string {
  if (!text.includes("%25")) return decodeEscapes(text);
  return text.replace(/(?:%(?:25)*[0-9a-f]{2})+/gi, (escapes) =>
    decodeEscapeRun(escapes.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, "%")),
  );
}

/** Decodes a path until nothing changes, `DECODE_ROUNDS` times at most. */
export function decodeAll(text: string): string {
  let decoded = text;
  for (let round = 0; round < DECODE_ROUNDS && decoded.includes("%"); round++) {
    const next = decodeNextLevel(decoded);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

/**
 * Decodes a path as lenient decoders do, until nothing changes. The result of a round may be an escape
 * again. Folds compatible characters, but not case.
 *
 * @param once the path after one {@link decodeLevel}
 */
export function decodeLeniently(once: string): string {
  let decoded = once;
  for (let round = 0; round < DECODE_ROUNDS; round++) {
    // Folding may have created escapes from a full-width `％`. Only decodeLevel writes the invalid ones
    // in upper case.
    const standard = round === 0 ? decodeNextLevel(decoded) : decodeLevel(decoded);
    const next = foldText(decodeNonStandard(standard), true);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

/** Decodes another level, unless all remaining escapes are invalid bytes. */
function decodeNextLevel(text: string): string {
  return hasDecodableEscapes(text) ? decodeLevel(text) : text;
}
