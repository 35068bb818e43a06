/**
 * Returns a route in Hono's notation for a path in the notation of another framework; undefined if
 * the path has no such notation. The result may be no valid route.
 *
 * - Next.js, SvelteKit and Astro: `/users/[id]`, `/[...slug]`, `/[[...slug]]`
 * - Flask and Django: `/users/<id>`, `/users/<int:id>`
 * - Remix and TanStack: `/users/$id`
 * - Express 4: `/:id(\\d+)`
 * - nginx and shells: `~ /api`, `*.php`
 * - Rails: `/:id.json`
 */
export function routeOfOthers(text: string): string | undefined {
  const [, prefix] = /^[~^]\*?~?\s+\^?(\/[\w/-]*)$/.exec(text) ?? [];
  if (prefix) return prefix.endsWith("/") ? `${prefix}*` : `${prefix}/*`;
  const [, extension] = /^\/?\*\.(\w+)$/.exec(text) ?? [];
  if (extension) return `/:file{.+\\.${extension}}`;
  const segments = text.split("/");
  const mended = segments.map(segmentOfOthers);
  return mended.join() === segments.join() ? undefined : mended.join("/");
}

/** The names of parameters that make a segment such as `$id` different from a literal `$metadata`. */
const DOLLAR = /^\$(\w*id|slug|name|key|user|username)$/i;

function segmentOfOthers(segment: string): string {
  if (/^\[{1,2}\.{3}\w+\]{1,2}$/.test(segment)) return "*";
  const [, bracketed] = /^\[(\w+)(?:=\w+)?\]$/.exec(segment) ?? [];
  if (bracketed) return `:${bracketed}`;
  const [, converter, angled] = /^<(?:(\w+):)?(\w+)>$/.exec(segment) ?? [];
  if (angled) {
    if (converter === "path") return "*";
    return converter === "int" ? `:${angled}{[0-9]+}` : `:${angled}`;
  }
  const [, dollar] = DOLLAR.exec(segment) ?? [];
  if (dollar) return `:${dollar}`;
  const [, name, pattern] = /^:(\w+)\(([^(){}]+)\)$/.exec(segment) ?? [];
  if (name) return pattern === ".*" ? "*" : `:${name}{${pattern}}`;
  const [, file, extension] = /^:(\w+)\.(\w+)$/.exec(segment) ?? [];
  return file ? `:${file}{.+\\.${extension}}` : segment;
}
