import {
  decodeEscapeRun,
  decodeEscapes,
  decodeNonStandard,
  foldText,
  hasDecodableEscapes,
} from "./text-folding.ts";

/**
 * The maximum number of times that escapes are decoded. Most origins decode once, and careless
 * origins decode twice.
 */
const DECODE_ROUNDS = 3;

/**
 * Decodes one level of escapes. Repeated `%25`, as in `%2525252f`, counts as one level, however
 * often it is repeated, because decoding many levels one by one would take long.
 */
export function decodeLevel(text: string): string {
  if (!text.includes("%25")) return decodeEscapes(text);
  return text.replace(/(?:%(?:25)*[0-9a-f]{2})+/gi, (escapes) =>
    decodeEscapeRun(escapes.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, "%")),
  );
}

/** Decodes a path until nothing changes, but at most `DECODE_ROUNDS` times. */
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
 * Decodes a path as lenient decoders do. The function decodes in rounds, because the result of a
 * round may contain new escapes. It stops if nothing changes, or after `DECODE_ROUNDS` rounds. It
 * also folds compatible characters, but not case.
 *
 * @param once the path after one call of {@link decodeLevel}
 */
export function decodeLeniently(once: string): string {
  let decoded = once;
  for (let round = 0; round < DECODE_ROUNDS; round++) {
    // Later rounds use `decodeLevel`, because folding may have created new escapes from a
    // full-width `％`. If these escapes are invalid, `decodeLevel` writes them in upper case, and
    // `decodeNextLevel` would not.
    const standard = round === 0 ? decodeNextLevel(decoded) : decodeLevel(decoded);
    const next = foldText(decodeNonStandard(standard), true);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

/** Decodes one more level of escapes, if the text still contains escapes of valid UTF-8. */
function decodeNextLevel(text: string): string {
  return hasDecodableEscapes(text) ? decodeLevel(text) : text;
}
