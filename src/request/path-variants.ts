/**
 * Returns the variants of a decoded path for origins that strip path parameters. These origins
 * differ in three ways: whether they read `\` as a slash, whether they resolve dots, and whether
 * they strip parameters before they resolve dots. If an origin strips parameters afterwards, a
 * segment `;x` still exists when dots are resolved. Then `..` may remove this segment instead of
 * the segment before it.
 *
 * @param fold a function that folds the characters of a segment, if the text is not folded yet
 */
export function strippedVariants(decoded: string, fold: (text: string) => string): string[] {
  const text = cutAtNul(decoded);
  return separatorsIn(text).flatMap((separator) => {
    const segments = text.split(separator).filter(Boolean);
    const stripped = segments.map((segment) => stripSegment(fold(segment)));
    // Without dots there is nothing to resolve.
    if (!DOTS.test(text)) return [join(stripped)];
    const strippedLast = resolveDots(segments).map((segment) => stripSegment(fold(segment)));
    return [join(resolveDots(stripped)), join(stripped), join(strippedLast)];
  });
}

/**
 * Returns the variants of a decoded path for origins that do not know path parameters. For these
 * origins, `;x`, a NUL and blanks are part of a segment's text. In one variant, semicolons, NULs
 * and blanks are removed from the start of each segment, because a program may strip them before it
 * uses the segment.
 *
 * @param fold the same function as for {@link strippedVariants}
 */
export function unstrippedVariants(decoded: string, fold: (text: string) => string): string[] {
  return separatorsIn(decoded).flatMap((separator) => {
    const segments = decoded.split(separator).map((segment) => escapeSlashes(fold(segment)));
    const variants = [join(segments)];
    if (DOTS.test(decoded)) variants.push(join(resolveDots(segments)));
    if (segments.some((segment) => STRIPPED_FROM_START.test(segment))) {
      const trimmed = segments.map((segment) => segment.replace(STRIPPED_FROM_START, ""));
      variants.push(join(trimmed.map(removeParameters)));
    }
    return variants;
  });
}

/** Whether the stripped and the unstripped variants of a decoded path differ. */
export function hasStrippableText(decoded: string): boolean {
  return /[;\0\s]/.test(decoded);
}

/** Returns the canonical form of a decoded path. Of all variants, it makes the most paths equal. */
export function canonicalVariant(decoded: string): string {
  const segments = cutAtNul(decoded).split(/[/\\]/).filter(Boolean);
  return join(resolveDots(segments.map(removeParameters)));
}

/**
 * Returns the variant for an origin that splits the path, and then decodes and strips each segment.
 */
export function joinStripped(segments: readonly string[]): string {
  return join(segments.map((segment) => stripSegment(cutAtNul(segment))));
}

/**
 * Returns the variant for an origin that splits the path, decodes each segment and strips nothing.
 */
export function joinUnstripped(segments: readonly string[]): string {
  return join(segments.map(escapeSlashes));
}

export function removeTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

/**
 * Matches a full stop in any of its forms, or a single character that consists of two or three
 * dots.
 */
const DOTS = /[.\u2024-\u2026\ufe19\ufe30\ufe52\uff0e]/;

/** Matches text that some programs strip from the start of a segment. */
const STRIPPED_FROM_START = /^[;\0\s]+/;

/** Returns the separators at which origins may split a path. */
function separatorsIn(decoded: string): (string | RegExp)[] {
  return decoded.includes("\\") ? [/[/\\]/, "/"] : ["/"];
}

function cutAtNul(decoded: string): string {
  return decoded.split("\0", 1)[0] ?? "";
}

/**
 * Removes a segment's parameters and escapes its slashes, because the origin does not split it
 * again.
 */
function stripSegment(segment: string): string {
  return escapeSlashes(removeParameters(segment));
}

function escapeSlashes(segment: string): string {
  return /[/\\]/.test(segment) ? segment.replace(/[/\\]/g, "%2f") : segment;
}

function removeParameters(segment: string): string {
  const end = segment.indexOf(";");
  return (end === -1 ? segment : segment.slice(0, end)).trimEnd();
}

function resolveDots(segments: readonly string[]): string[] {
  const resolved: string[] = [];
  for (const segment of segments) {
    if (segment === "..") resolved.pop();
    else if (segment !== "" && segment !== ".") resolved.push(segment);
  }
  return resolved;
}

function join(segments: readonly string[]): string {
  return `/${segments.filter((segment) => segment !== "").join("/")}`;
}
