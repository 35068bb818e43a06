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

/** What would be a second request, if one took the body's end for where the attacker wants it. */
const SMUGGLED = "GET /admin HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

const CHUNKED = "Transfer-Encoding: chunked";

export const wire: VectorClass = {
  about: "The wire: what is one request to one server, and two to another",
  vectors: [
    post(
      "chunked, and a length: the chunks count",
      [CHUNKED, "Content-Length: 4"],
      `0\r\n\r\n${SMUGGLED}`,
      { counted: login },
    ),
    post("the same, the other way round", ["Content-Length: 4", CHUNKED], `0\r\n\r\n${SMUGGLED}`, {
      counted: login,
    }),
    post("two lengths", ["Content-Length: 0", "Content-Length: 5"], SMUGGLED, { status: 400 }),
    post("the same length twice", ["Content-Length: 5, 5"], "hello", { status: 400 }),
    post("a length with a sign", ["Content-Length: +5"], "hello", { status: 400 }),
    post("a length below zero", ["Content-Length: -1"], SMUGGLED, { status: 400 }),
    post("a length in hexadecimal", ["Content-Length: 0x5"], "hello", { status: 400 }),
    post("an encoding that is none", ["Transfer-Encoding: xchunked"], SMUGGLED, { status: 400 }),
    post("chunked and another one", ["Transfer-Encoding: chunked, identity"], SMUGGLED, {
      status: 400,
    }),
    post("chunked behind a control", ["Transfer-Encoding:\x0bchunked"], SMUGGLED, { status: 400 }),
    { name: "a space before a colon", lines: head("/login", "X-Api-Key : k"), status: 400 },
    { name: "a line that is folded", lines: head("/login", "X-Api-Key: k", " k"), status: 400 },
    {
      name: "a CR in a value",
      lines: head("/login", "X-Api-Key: k\rX-Internal: let-me-pass"),
      status: 400,
    },
    { name: "a NUL in a value", lines: head("/login", "X-Api-Key: k\0"), status: 400 },
    { name: "a line without a colon", lines: head("/login", "nonsense"), status: 400 },
    { name: "a field without a name", lines: head("/login", ": k"), status: 400 },
    {
      name: "a LF ends a line, too",
      lines: head("/login", "X-Junk: k\nX-Api-Key: k"),
      counted: login,
    },
    { name: "HTTP/2.0 in a text", lines: lines("GET /login HTTP/2.0", "Host: x"), status: 400 },
    { name: "no version", lines: lines("GET /login", "Host: x"), status: 400 },
    {
      name: "two spaces before the target",
      lines: lines("GET  /login HTTP/1.1", "Host: x"),
      status: 400,
    },
    { name: "two spaces behind it", lines: lines("GET /login  HTTP/1.1", "Host: x"), status: 400 },
    { name: "tabs for spaces", lines: lines("GET\t/login\tHTTP/1.1", "Host: x"), status: 400 },
    {
      name: "a CR for a CRLF",
      lines: [lines("GET /login HTTP/1.1", "Host: x").join("\r")],
      status: 400,
    },
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
