// These functions read a URL's path as different servers do, and return the path that a server compares with its
// routes.

/** Reads a path as an origin does. @throws for a path that the origin would refuse */
type PathReading = (pathname: string) => string;

export const ORIGINS: Readonly<Record<string, PathReading>> = {
  "decodes, then resolves": (pathname) => resolve(decode(pathname)),
  "splits, then decodes": (pathname) => pathname.split("/").map(decode).join("/"),
  "removes parameters, then decodes and resolves": (pathname) =>
    resolve(decode(pathname.replace(/;[^/]*/g, ""))),
  "decodes, resolves, then removes parameters": (pathname) =>
    resolve(decode(pathname)).replace(/;[^/]*/g, ""),
  "reads a backslash as a slash": (pathname) => resolve(decode(pathname).replaceAll("\\", "/")),
  "stops at a NUL": (pathname) => resolve(decodeURIComponent(pathname).replace(/\0.*/s, "")),
  "decodes twice": (pathname) => resolve(decode(decode(pathname))),
  "resolves, then decodes twice": (pathname) => decode(decode(resolve(pathname))),
};

/** Decodes a path. Origins that do not stop at a NUL refuse a path with a NUL. */
function decode(text: string): string {
  const path = decodeURIComponent(text);
  if (path.includes("\0")) throw new Error("400");
  return path;
}

function resolve(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return `/${segments.join("/")}`;
}
