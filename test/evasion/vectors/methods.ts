import { lines, type Vector, type VectorClass } from "../vector.ts";

function method(name: string, counted: Vector["counted"], ...fields: string[]): Vector {
  return {
    name: [name, ...fields].join(", "),
    lines: lines(`${name} /method HTTP/1.1`, "Host: api.example.com", ...fields),
    ...(counted && { counted }),
  };
}

/** workerd knows no such method, and says so by itself. */
function unknown(name: string, status = 501): Vector {
  return { ...method(name, undefined), status };
}

const ORIGIN = "Origin: https://app.example";
const ASKED = "Access-Control-Request-Method: POST";
const read = { read: "client" };
const write = { write: "client" };

export const methods: VectorClass = {
  about: "The method: HEAD, OPTIONS, other cases, overrides",
  vectors: [
    method("GET", read),
    method("POST", write, "Content-Length: 0"),
    method("HEAD", { ...read, head: "client" }),
    method("OPTIONS", { options: "client" }),
    // A preflight falls under a rule that names OPTIONS, and under no other: `all` does not count it.
    {
      ...method("OPTIONS", { options: "client" }, ORIGIN, ASKED),
      name: "a preflight to a rule for OPTIONS",
      preflight: true,
    },
    {
      name: "a preflight",
      preflight: true,
      lines: lines("OPTIONS /login HTTP/1.1", "Host: api.example.com", ORIGIN, ASKED),
    },
    {
      // As proxies add it, wrangler's among them.
      name: "a preflight with a length of 0",
      preflight: true,
      lines: lines(
        "OPTIONS /login HTTP/1.1",
        "Host: api.example.com",
        ORIGIN,
        ASKED,
        "Content-Length: 0",
      ),
    },
    ...[
      "Cookie: a=b",
      "Authorization: Bearer t",
      "Content-Length: 5",
      "Transfer-Encoding: chunked",
    ].map(
      (field): Vector => ({
        name: `a preflight's fields and ${field}`,
        lines: lines("OPTIONS /login HTTP/1.1", "Host: api.example.com", ORIGIN, ASKED, field),
        body: field.endsWith("5") ? "hello" : field.endsWith("chunked") ? "0\r\n\r\n" : "",
        counted: { login: "client", path: "login" },
      }),
    ),
    {
      name: "OPTIONS with an origin, but no method asked for",
      lines: lines("OPTIONS /login HTTP/1.1", "Host: api.example.com", ORIGIN),
      counted: { login: "client", path: "login" },
    },
    ...[
      [ORIGIN, "Access-Control-Request-Method:"],
      ["Origin:", ASKED],
    ].map(
      (fields): Vector => ({
        name: `OPTIONS with ${fields.join(" and ")}`,
        lines: lines("OPTIONS /login HTTP/1.1", "Host: api.example.com", ...fields),
        counted: { login: "client", path: "login" },
      }),
    ),
    {
      name: "another method with a preflight's fields",
      lines: lines("PROPFIND /login HTTP/1.1", "Host: api.example.com", ORIGIN, ASKED),
      counted: { login: "client", path: "login" },
    },
    ...["PUT", "PATCH", "DELETE", "TRACE", "PURGE", "PROPFIND", "QUERY"].map((name) =>
      method(name, {}),
    ),
    ...["post", "Post", "get", "FOO", "M-SEARCH", "PO ST"].map((name) =>
      unknown(name, name.includes(" ") ? 400 : 501),
    ),
    unknown("CONNECT", 500),
    unknown("POST\t", 400),
    // What an origin makes of these is its own affair; a rule that must hold for it names no method.
    method("GET", read, "X-HTTP-Method-Override: POST"),
    method("GET", read, "X-HTTP-Method: POST"),
    method("GET", read, "X-Method-Override: POST"),
    method("POST", write, "X-HTTP-Method-Override: GET", "Content-Length: 0"),
    {
      ...method("GET", read),
      name: "GET, _method=POST",
      lines: lines("GET /method?_method=POST HTTP/1.1", "Host: api.example.com"),
    },
    // A connection that is switched is one request, whatever goes over it then.
    method("GET", read, "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
  ],
};
