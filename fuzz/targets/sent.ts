import fc from "fast-check";
import { withItsMethod } from "../../src/http/forward.ts";
import { canonicalRequest } from "../../src/request/canonical-request.ts";
import { createTarget } from "../property.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE"];

const field = fc.oneof(
  fc.record({
    name: fc.constantFrom("Upgrade", "upgrade", "UPGRADE"),
    value: fc.oneof(
      fc.constantFrom("websocket", "WebSocket", " websocket\t", "h2c", "", "websocket/13"),
      fc.mixedCase(fc.constant("websocket")),
      fc.constantFrom("h2c, websocket", "websocket,", '"websocket"'),
    ),
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

/** The target for requests that the runtime changes when it sends them. */
export const sentTarget = createTarget(
  "sent",
  "rules match the method with which the runtime sends a request",
  fc.record({ method: fc.constantFrom(...METHODS), fields: fc.array(field, { maxLength: 6 }) }),
  ({ method, fields }) => {
    const headers = new Headers();
    for (const { name, value } of fields) headers.append(name, value);
    const request = new Request("https://api.example.com/", { method, headers });
    const matched = canonicalRequest(request, false);
    const sent = methodSentBy(withItsMethod(request));
    if (matched?.sentMethod !== sent)
      throw new Error(`matched ${matched?.sentMethod}, sent ${sent}`);
    if (matched.isPreflight && headers.has("upgrade")) throw new Error("a preflight with Upgrade");
  },
);
