/** A path that has been decoded, and cut at a NUL: what is left of it to be read. */
function readable(decoded: string): string {
  return decoded.split("\0", 1)[0] ?? "";
}

/**
 * What a decoded path is to an origin that divides it now: `\` is a slash to some, `;parameters` go
 * before dots are resolved, or after, when `;x/..` has been one segment; or dots stay.
 *
 * @param fold what is left of differences between letters, in a segment that has been divided off
 */
export function waysToDivide(decoded: string, fold: (text: string) => string): string[] {
  const text = readable(decoded);
  const dividers = text.includes("\\") ? [/[/\\]/, "/"] : ["/"];
  return dividers.flatMap((divider) => {
    const segments = text.split(divider).filter(Boolean);
    const bare = segments.map((segment) => asOne(fold(segment)));
    // Without dots there is nothing to resolve.
    if (!DOTS.test(text)) return [join(bare)];
    const late = resolve(segments).map((segment) => asOne(fold(segment)));
    return [join(resolve(bare)), join(bare), join(late)];
  });
}

/** A full stop in any of its forms; a leader of two or three of them. */
const DOTS = /[.\u2024-\u2026\ufe19\ufe30\ufe52\uff0e]/;

/** A decoded path by the reading that takes most for the same. */
export function mostResolved(decoded: string): string {
  const segments = readable(decoded).split(/[/\\]/).filter(Boolean);
  return join(resolve(segments.map(withoutParameters)));
}

/** A path whose segments have been decoded one by one. */
export function undivided(segments: readonly string[]): string {
  return join(segments.map((segment) => asOne(readable(segment))));
}

/** The same with all that is in the segments. */
export function undividedText(segments: readonly string[]): string {
  return join(segments.map(withoutSlashes));
}

/** Whether a decoded path has anything that {@link waysToDivide} removes and other origins keep. */
export function hasLiterals(decoded: string): boolean {
  return /[;\0\s]/.test(decoded);
}

/**
 * What a decoded path is to an origin that knows no parameters: `;x`, a NUL and blanks are text, and
 * a segment of nothing else is a segment. Also without those at a segment's start, which a program
 * may strip before it uses the value.
 *
 * @param fold as for {@link waysToDivide}
 */
export function waysToKeep(decoded: string, fold: (text: string) => string): string[] {
  const dividers = decoded.includes("\\") ? [/[/\\]/, "/"] : ["/"];
  return dividers.flatMap((divider) => {
    const kept = decoded.split(divider).map((segment) => withoutSlashes(fold(segment)));
    const readings = [join(kept)];
    if (DOTS.test(decoded)) readings.push(join(resolve(kept)));
    if (kept.some((segment) => LEADING.test(segment))) {
      readings.push(join(kept.map((segment) => withoutParameters(segment.replace(LEADING, "")))));
    }
    return readings;
  });
}

/** What some remove from a segment's start. */
const LEADING = /^[;\0\s]+/;

/** A segment that an origin has divided off before: what is a slash in it does not divide it. */
function asOne(segment: string): string {
  return withoutSlashes(withoutParameters(segment));
}

function withoutSlashes(segment: string): string {
  return /[/\\]/.test(segment) ? segment.replace(/[/\\]/g, "%2f") : segment;
}

function withoutParameters(segment: string): string {
  const end = segment.indexOf(";");
  return (end === -1 ? segment : segment.slice(0, end)).trimEnd();
}

function resolve(segments: readonly string[]): string[] {
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
