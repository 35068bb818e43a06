import type { Operator } from "./admin-env.ts";
import type { AdminToken } from "./credentials.ts";
import { isSameText } from "./digest.ts";

/** Returns the operator whose valid credential a request has; undefined if it has none. */
export type Gate = (request: Request) => Promise<Operator | undefined>;

/** Creates the gate in front of everything below `/_weir/`. */
export function createGate(tokens: readonly AdminToken[]): Gate {
  return async function operatorOf(request) {
    const sent = request.headers.get("authorization");
    if (sent === null) return undefined;
    let operator: Operator | undefined;
    for (const { value, role } of tokens) {
      if (await isSameText(sent, `Bearer ${value}`)) operator = { actor: "token", role, csrf: "" };
    }
    return operator;
  };
}
