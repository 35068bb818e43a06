import { head, lines, type Vector, type VectorClass } from "../vector.ts";

const login = { login: "client", path: "login" };

function post(
  name: string,
  fields: string[],
  body: string,
  rest: Omit<Vector, "name" | "lines" | "body">,
): Vector {
  return {
    name,
    lines: lines("POST /login HTTP/1.1", "Host: api.example.com", ...fields),
    body,
    ...rest,
  };
}

/** A head that workerd refuses. */
function refused(name: string, lines: readonly string[]): Vector {
  return { name, lines, status: 400 };
}

/**
 * A second request, hidden in the body. A server that ends the body too early reads this request.
 */
const SMUGGLED = "GET /admin HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

const CHUNKED = "Transfer-Encoding: chunked";

export const wire: VectorClass = {
  about: "The wire: requests that some servers read as two",
  vectors: [
    post(
      "chunks, then a Content-Length: the chunks determine where the body ends",
      [CHUNKED, "Content-Length: 4"],
      `0\r\n\r\n${SMUGGLED}`,
      { counted: login },
    ),
    post(
      "a Content-Length, then chunks: the chunks determine where the body ends",
      ["Content-Length: 4", CHUNKED],
      `0\r\n\r\n${SMUGGLED}`,
      {
        counted: login,
      },
    ),
    post("two lengths", ["Content-Length: 0", "Content-Length: 5"], SMUGGLED, { status: 400 }),
    post("the same length twice", ["Content-Length: 5, 5"], "hello", { status: 400 }),
    post("a length with a sign", ["Content-Length: +5"], "hello", { status: 400 }),
    post("a length below zero", ["Content-Length: -1"], SMUGGLED, { status: 400 }),
    post("a length in hexadecimal", ["Content-Length: 0x5"], "hello", { status: 400 }),
    post("an invalid encoding", ["Transfer-Encoding: xchunked"], SMUGGLED, { status: 400 }),
    post("chunked and a second encoding", ["Transfer-Encoding: chunked, identity"], SMUGGLED, {
      status: 400,
    }),
    post("chunked after a control character", ["Transfer-Encoding:\x0bchunked"], SMUGGLED, {
      status: 400,
    }),
    refused("a space before a colon", head("/login", "X-Api-Key : k")),
    refused("a folded line", head("/login", "X-Api-Key: k", " k")),
    refused("a CR in a value", head("/login", "X-Api-Key: k\rX-Internal: let-me-pass")),
    refused("a NUL in a value", head("/login", "X-Api-Key: k\0")),
    refused("a line without a colon", head("/login", "nonsense")),
    refused("a field without a name", head("/login", ": k")),
    {
      name: "a line that ends in LF",
      lines: head("/login", "X-Junk: k\nX-Api-Key: k"),
      counted: login,
    },
    refused("HTTP/2.0 as the version", lines("GET /login HTTP/2.0", "Host: x")),
    refused("no version", lines("GET /login", "Host: x")),
    refused("two spaces before the target", lines("GET  /login HTTP/1.1", "Host: x")),
    refused("two spaces after the target", lines("GET /login  HTTP/1.1", "Host: x")),
    refused("tabs for spaces", lines("GET\t/login\tHTTP/1.1", "Host: x")),
    refused("CR in place of CRLF", [lines("GET /login HTTP/1.1", "Host: x").join("\r")]),
    { name: "an empty line before the request", lines: ["", ...head("/login")], counted: login },
    {
      name: "200 fields",
      lines: head("/login", ...Array.from({ length: 200 }, (_, n) => `X-${n}: ${n}`)),
      counted: login,
    },
    {
      name: "fields of 200 KB",
      lines: head("/login", `X-Junk: ${"a".repeat(200_000)}`),
      counted: login,
    },
  ],
};
