import fc from "fast-check";
import { createForward, withItsMethod } from "../../src/http/forward.ts";
import { canonicalRequest } from "../../src/request/canonical-request.ts";
import { createAsyncTarget } from "../property.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE"];

/** The characters of a field's name that are no letters and no digits. */
const separator = fc.constantFrom(..."!#$%&'*+-.^_`|~-_");

/** Spellings that a server with CGI variables reads as the same name. */
function spellings(...words: string[]): fc.Arbitrary<string> {
  const separators = fc.array(separator, { minLength: words.length, maxLength: words.length });
  return separators.chain((chosen) =>
    fc.mixedCase(
      fc.constant(words.map((word, index) => (index ? chosen[index] : "") + word).join("")),
    ),
  );
}

const field = fc.oneof(
  fc.record({
    name: fc.constantFrom("Upgrade", "upgrade", "UPGRADE"),
    value: fc.oneof(
      fc.constantFrom("websocket", "WebSocket", " websocket\t", "h2c", "", "websocket/13"),
      fc.mixedCase(fc.constant("websocket")),
      fc.constantFrom("h2c, websocket", "websocket,", '"websocket"'),
    ),
  }),
  fc.record({
    name: fc.oneof(
      spellings("x", "original", "url"),
      spellings("x", "rewrite", "url"),
      spellings("x", "http", "method", "override"),
      spellings("x", "method", "override"),
    ),
    value: fc.constantFrom("/login", "DELETE"),
  }),
  fc.constantFrom(
    { name: "Connection", value: "Upgrade" },
    { name: "Origin", value: "https://app.example" },
    { name: "Access-Control-Request-Method", value: "POST" },
    { name: "Cookie", value: "a=b" },
  ),
);

/** Returns the method with which workerd sends a request. */
function methodSentBy({ method, headers }: Request): string {
  return headers.get("upgrade")?.toLowerCase() === "websocket" ? "GET" : method;
}

/** Returns the request that a binding of the origin gets. */
async function sentFor(request: Request): Promise<Request> {
  let sent: Request = request;
  const service = {
    fetch: async (outgoing: Request) => {
      sent = outgoing;
      return new Response();
    },
  } as unknown as Fetcher;
  await createForward(
    { origin: { kind: "binding", service }, origins: new Map() },
    true,
  )(withItsMethod(request));
  return sent;
}

/** The names of a CGI server's variables. */
function variablesOf({ headers }: Request): string[] {
  return [...headers.keys()].map((name) => name.toUpperCase().replace(/[^A-Z\d]/g, "_"));
}

/** The target for requests that the runtime changes when it sends them. */
export const sentTarget = createAsyncTarget(
  "sent",
  "the origin gets the method that rules match, and no other path or method",
  fc.record({ method: fc.constantFrom(...METHODS), fields: fc.array(field, { maxLength: 6 }) }),
  async ({ method, fields }) => {
    const headers = new Headers();
    for (const { name, value } of fields) headers.append(name, value);
    const request = new Request("https://api.example.com/", { method, headers });
    const matched = canonicalRequest(request, false);
    const sent = await sentFor(request);
    const sentMethod = methodSentBy(sent);
    if (matched?.sentMethod !== sentMethod)
      throw new Error(`matched ${matched?.sentMethod}, sent ${sentMethod}`);
    const variables = variablesOf(sent);
    if (variables.some((name) => /^X_(ORIGINAL|REWRITE)_URL$/.test(name)))
      throw new Error("another path");
    const changesMethod = variables.some((name) => /^X_(HTTP_)?METHOD_OVERRIDE$/.test(name));
    if (matched.isPreflight && (headers.has("upgrade") || changesMethod))
      throw new Error("a preflight with another method");
  },
);
