import type { Config } from "../config/schema.ts";

/** Returns the Worker's time; undefined if the store's clock determines the windows. */
export function timeOf({ clock }: Pick<Config, "clock">, now = Date.now()): number | undefined {
  return clock === "edge" ? now : undefined;
}
