import { lines, type Vector, type VectorClass } from "../vector.ts";

function method(name: string, counted: Vector["counted"], ...fields: string[]): Vector {
  return {
    name: [name, ...fields].join(", "),
    lines: lines(`${name} /method HTTP/1.1`, "Host: api.example.com", ...fields),
    ...(counted && { counted }),
  };
}

/** An OPTIONS request for /login. */
function optionsLogin(name: string, fields: readonly string[], rest: Partial<Vector>): Vector {
  return {
    name,
    lines: lines("OPTIONS /login HTTP/1.1", "Host: api.example.com", ...fields),
    ...rest,
  };
}

/** A method that workerd does not know and refuses. */
function unknown(name: string, status = 501): Vector {
  return { ...method(name, undefined), status };
}

const ORIGIN = "Origin: https://app.example";
const REQUESTED = "Access-Control-Request-Method: POST";
const LOGIN = { login: "client", path: "login" };
const read = { read: "client" };
const write = { write: "client" };

/** The spellings of Upgrade by which the runtime, or a server, may switch to WebSockets. */
const UPGRADES = [
  ["websocket"],
  ["WebSocket"],
  ["WEBSOCKET "],
  ["\twebsocket"],
  ["websocket", "websocket"],
  ["websocket, websocket"],
  ["h2c, websocket"],
  ["websocket/13"],
].map((values) => values.map((value) => `Upgrade: ${value}`));

/** The rules for `/method` that count a request with this method. */
const COUNTED_BY_METHOD: Record<string, Vector["counted"]> = {
  GET: read,
  HEAD: { ...read, head: "client" },
  POST: write,
  OPTIONS: { options: "client" },
  TRACE: {},
  PROPFIND: {},
};

/**
 * Requests with Upgrade. By itself, the runtime would send each of them as GET. The tests compare the method
 * that the origin receives.
 */
const upgrades: Vector[] = UPGRADES.flatMap((fields) => [
  ...Object.entries(COUNTED_BY_METHOD).map(([name, counted]) => method(name, counted, ...fields)),
  ...["GET", "POST", "OPTIONS"].map((name) => ({
    name: [`${name} under an exception for GET`, ...fields].join(", "),
    lines: lines(`${name} /unless-method HTTP/1.1`, "Host: api.example.com", ...fields),
    counted: name === "GET" ? {} : { "unless-method": "client" },
  })),
  optionsLogin(["a preflight's fields", ...fields].join(", "), [ORIGIN, REQUESTED, ...fields], {
    counted: LOGIN,
  }),
]);

export const methods: VectorClass = {
  about: "The method: HEAD, OPTIONS, Upgrade, other cases, overrides",
  vectors: [
    method("GET", read),
    method("POST", write, "Content-Length: 0"),
    method("HEAD", { ...read, head: "client" }),
    method("OPTIONS", { options: "client" }),
    // Only a rule that names OPTIONS matches a preflight, so `all` does not count it.
    {
      ...method("OPTIONS", { options: "client" }, ORIGIN, REQUESTED),
      name: "a preflight to a rule for OPTIONS",
      preflight: true,
    },
    optionsLogin("a preflight", [ORIGIN, REQUESTED], { preflight: true }),
    // Proxies add this field, and so does wrangler's proxy.
    optionsLogin("a preflight with Content-Length: 0", [ORIGIN, REQUESTED, "Content-Length: 0"], {
      preflight: true,
    }),
    ...Object.entries({
      "Cookie: a=b": "",
      "Authorization: Bearer t": "",
      "Content-Length: 5": "hello",
      "Transfer-Encoding: chunked": "0\r\n\r\n",
    }).map(([field, body]) =>
      optionsLogin(`a preflight's fields and ${field}`, [ORIGIN, REQUESTED, field], {
        body,
        counted: LOGIN,
      }),
    ),
    optionsLogin("OPTIONS with an origin, but no requested method", [ORIGIN], { counted: LOGIN }),
    optionsLogin(
      "OPTIONS with an origin and an empty method",
      [ORIGIN, "Access-Control-Request-Method:"],
      { counted: LOGIN },
    ),
    optionsLogin("OPTIONS with an empty origin and a method", ["Origin:", REQUESTED], {
      counted: LOGIN,
    }),
    {
      name: "another method with a preflight's fields",
      lines: lines("PROPFIND /login HTTP/1.1", "Host: api.example.com", ORIGIN, REQUESTED),
      counted: LOGIN,
    },
    ...["PUT", "PATCH", "DELETE", "TRACE", "PURGE", "PROPFIND", "QUERY"].map((name) =>
      method(name, {}),
    ),
    ...["post", "Post", "get", "FOO", "M-SEARCH", "PO ST"].map((name) =>
      unknown(name, name.includes(" ") ? 400 : 501),
    ),
    unknown("CONNECT", 500),
    unknown("POST\t", 400),
    // An origin may use the method in these fields or in the query instead. So a rule that is to
    // count all such requests must not name methods.
    method("GET", read, "X-HTTP-Method-Override: POST"),
    method("GET", read, "X-HTTP-Method: POST"),
    method("GET", read, "X-Method-Override: POST"),
    method("POST", write, "X-HTTP-Method-Override: GET", "Content-Length: 0"),
    {
      ...method("GET", read),
      name: "GET, _method=POST",
      lines: lines("GET /method?_method=POST HTTP/1.1", "Host: api.example.com"),
    },
    ...upgrades,
    // A request that changes the protocol of its connection counts as one request.
    method("GET", read, "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
  ],
};
