// What a request carries under a name, as the origin takes it. Two spellings of one value are one
// here, and where the origin may take another value than Weir would, there is none: else who holds
// one good API key or session could be a new client with each request.

/** Fields whose own grammar has commas in it, and that no origin takes for a credential. */
const LISTS = /^(user-agent|accept.*|sec-.*)$/;

/**
 * @param name in lower case
 * @returns undefined also for a field that was sent twice: its values come joined by a comma
 */
export function headerNamed(headers: Headers, name: string): string | undefined {
  const value = headers.get(name);
  if (!value || (value.includes(",") && !LISTS.test(name))) return undefined;
  return headerValue(name, value);
}

/** What a field holds, in one spelling. */
export function headerValue(name: string, value: string): string {
  const bare = value.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  return /^(proxy-)?authorization$/.test(name) ? credentials(bare) : bare;
}

/** Several Cookie fields arrive as one, joined by commas, which no cookie may have in it (RFC 6265). */
export function cookieNamed(headers: Headers, name: string): string | undefined {
  const pairs = (headers.get("cookie") ?? "").split(/[;,]/).map((pair): [string, string] => {
    const end = pair.indexOf("=");
    return end === -1 ? ["", ""] : [pair.slice(0, end), pair.slice(end + 1)];
  });
  return only(pairs, name, (text) => unescaped(unquoted(text.trim())));
}

export function queryNamed(query: URLSearchParams, name: string): string | undefined {
  return only(query, name, (text) => text.replace(/%u([0-9a-f]{4})/gi, fromCode));
}

/** Two values for one name leave open which of them the origin takes, so they count as none. */
function only(
  pairs: Iterable<readonly [string, string]>,
  name: string,
  read: (text: string) => string,
): string | undefined {
  const wanted = looseName(name);
  let found: string | undefined;
  for (const [given, text] of pairs) {
    // No name grows by being read loosely, so most are told apart by their lengths.
    if (given !== name && (given.length < wanted.length || looseName(given) !== wanted)) continue;
    if (found !== undefined) return undefined;
    found = bareValue(read(text));
  }
  return found;
}

/** What a cookie or query parameter holds, without what many servers take off its ends. */
export function bareValue(text: string): string {
  return text.replace(/^[\s\0]+|[\s\0]+$/g, "");
}

/** A name as the most tolerant of servers take it: by no case, `a.b` and `a b` as `a_b`, `a[]` as `a`. */
function looseName(name: string): string {
  return unescaped(name)
    .replace(/\0.*$/s, "")
    .trim()
    .replace(/\[\d*\]$/, "")
    .replace(/[.\s]/g, "_")
    .toLowerCase();
}

/** A scheme is a word of no case, with any space behind it; base64 has many spellings, too. */
function credentials(value: string): string {
  const [, scheme, rest] = /^([\w.~+/-]+)\s+(.+)$/s.exec(value) ?? [];
  if (scheme === undefined || rest === undefined) return value;
  const kind = scheme.toLowerCase();
  return `${kind} ${kind === "basic" ? decoded(rest) : rest}`;
}

/** Decoders pass over what is not base64, and over odd bits at the end. */
function decoded(base64: string): string {
  const [letters = ""] = base64.replace(/[^\w+/=-]/g, "").split("=", 1);
  try {
    return atob(letters.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return letters;
  }
}

/** RFC 2109's quoted string, with the escapes that Python puts into it. */
function unquoted(text: string): string {
  const quoted = /^"(.*)"$/s.exec(text)?.[1];
  if (quoted === undefined) return text;
  return quoted.replace(/\\([0-3][0-7]{2}|.)/g, (_, escaped: string) =>
    escaped.length === 3 ? String.fromCharCode(Number.parseInt(escaped, 8)) : escaped,
  );
}

function unescaped(value: string): string {
  if (!value.includes("%")) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    // Not an escaped text, so it stands for itself.
    return value;
  }
}

function fromCode(_: string, code: string): string {
  return String.fromCharCode(Number.parseInt(code, 16));
}
