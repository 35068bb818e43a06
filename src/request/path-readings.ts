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

/** A path whose segments are decoded one by one. */
export function undivided(pathname: string, decode: (segment: string) => string): string {
  const segments = pathname.split("/").filter(Boolean);
  return join(segments.map((segment) => asOne(readable(decode(segment)))));
}

/** A segment that an origin has divided off before: what is a slash in it does not divide it. */
function asOne(segment: string): string {
  const bare = withoutParameters(segment);
  return /[/\\]/.test(bare) ? bare.replace(/[/\\]/g, "%2f") : bare;
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
