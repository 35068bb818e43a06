// How servers of different makes come from a URL's path to what their routes are compared with:
// none of them as Weir does it, and no two alike.

/** What an origin makes of a path; throws for one that it would refuse. */
type Reading = (pathname: string) => string;

export const ORIGINS: Readonly<Record<string, Reading>> = {
  "decodes, then resolves": (pathname) => resolved(decoded(pathname)),
  "divides, then decodes": (pathname) => pathname.split("/").map(decoded).join("/"),
  "takes parameters off, then decodes and resolves": (pathname) =>
    resolved(decoded(pathname.replace(/;[^/]*/g, ""))),
  "decodes, and takes parameters off then": (pathname) =>
    resolved(decoded(pathname)).replace(/;[^/]*/g, ""),
  "takes a backslash for a slash": (pathname) => resolved(decoded(pathname).replaceAll("\\", "/")),
  "stops at a NUL": (pathname) => resolved(decodeURIComponent(pathname).replace(/\0.*/s, "")),
  "decodes twice": (pathname) => resolved(decoded(decoded(pathname))),
  "resolves, and decodes twice then": (pathname) => decoded(decoded(resolved(pathname))),
};

/** Whoever does not stop at a NUL refuses it. */
function decoded(text: string): string {
  const path = decodeURIComponent(text);
  if (path.includes("\0")) throw new Error("400");
  return path;
}

function resolved(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") kept.pop();
    else if (segment !== "" && segment !== ".") kept.push(segment);
  }
  return `/${kept.join("/")}`;
}
