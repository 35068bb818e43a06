import {
  type AdminVector,
  BEARER,
  FORM_TYPE,
  JSON_TYPE,
  OVERRIDE,
  READ_TOKEN,
  send,
} from "../vector.ts";

const READ = `Authorization: Bearer ${READ_TOKEN}`;
const CLIENT = { client: "A".repeat(22), rule: "all", why: "evasion" };
const PUT = ["PUT", "/_weir/api/overrides"] as const;

function refused(vector: AdminVector, status: number): AdminVector {
  return { ...vector, refused: status };
}

const readOnly = (method: string, path: string, body: object | string, type = JSON_TYPE) =>
  refused(
    send(
      `a change by the reading token: ${method} ${path}`,
      [method, `/_weir/${path}`],
      typeof body === "string" ? body : JSON.stringify(body),
      type,
      READ,
    ),
    403,
  );

const faulty = (name: string, body: string, status = 400, type = JSON_TYPE) =>
  refused(send(name, PUT, body, BEARER, type), status);

/**
 * Requests with a valid token that must not change anything. The status 501 is that of workerd, which refuses methods
 * in lower case.
 */
export const changes = [
  readOnly("PUT", "api/overrides", OVERRIDE),
  readOnly("DELETE", "api/overrides", { id: "all", why: "evasion" }),
  readOnly("POST", "api/reset", CLIENT),
  readOnly("POST", "api/lift-ban", CLIENT),
  refused(
    send(
      "another method in a field",
      ["POST", "/_weir/api/overrides"],
      OVERRIDE,
      JSON_TYPE,
      BEARER,
      "X-HTTP-Method-Override: PUT",
      "X-HTTP-Method: PUT",
      "X-Method-Override: PUT",
    ),
    404,
  ),
  refused(
    send(
      "another method in the query",
      ["POST", "/_weir/api/overrides?_method=PUT"],
      OVERRIDE,
      JSON_TYPE,
      BEARER,
    ),
    404,
  ),
  refused(
    send("a method in lower case", ["put", "/_weir/api/overrides"], OVERRIDE, JSON_TYPE, BEARER),
    501,
  ),
  faulty("JSON as text", OVERRIDE, 415, "Content-Type: text/plain"),
  faulty("JSON as a form", OVERRIDE, 415, FORM_TYPE),
  faulty("a type that begins alike", OVERRIDE, 415, "Content-Type: application/jsonp"),
  faulty("no JSON", "rule=all"),
  faulty("two values", `${OVERRIDE}${OVERRIDE}`),
  faulty("a list", `[${OVERRIDE}]`),
  faulty("the prototype", OVERRIDE.replace('"rule"', '"__proto__":{"isAdmin":true},"rule"')),
  faulty("a prototype as the rule", OVERRIDE.replace('"all"', '"__proto__"')),
  faulty("a property of all objects as the rule", OVERRIDE.replace('"all"', '"constructor"')),
  faulty("a prototype as the client", OVERRIDE.replace('"rule"', '"client":"__proto__","rule"')),
  faulty(
    "a prototype among the known values",
    OVERRIDE.replace('"rule"', '"known":{"__proto__":"x"},"rule"'),
  ),
  faulty("a deep list", "[".repeat(60_000)),
  faulty("a long body", OVERRIDE.replace("evasion", "x".repeat(70_000)), 413),
  faulty("a number that is too large", OVERRIDE.replace('{"mode":"off"}', '{"factor":1e309}')),
  faulty("a negative factor", OVERRIDE.replace('{"mode":"off"}', '{"factor":-1}')),
  faulty("an override without an end", OVERRIDE.replace(',"expiresIn":"1h"', "")),
  faulty("an override for ever", OVERRIDE.replace('"1h"', '"9999d"')),
  faulty("an override without a reason", OVERRIDE.replace(',"reason":"evasion"', "")),
];
