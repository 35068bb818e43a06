import { describe } from "vitest";
import type { Store } from "../../src/stores/store.ts";
import { calendarSuite } from "./calendar-suite.ts";
import type { ExpiryOptions } from "./driver.ts";
import { type ModelSuiteOptions, modelSuite } from "./model-suite.ts";
import { slidingSuite } from "./sliding-suite.ts";
import { slotSuite } from "./slot-suite.ts";
import { storeSuite } from "./store-suite.ts";
import { vectorSuite } from "./vector-suite.ts";

/** The options of the model suite, and `ageKeys` for a store whose keys expire by its own clock. */
export interface ConformanceOptions extends ModelSuiteOptions, ExpiryOptions {}

/**
 * Tests that a store counts in the same way as the other stores. It tests each behaviour and each
 * vector, and compares random sequences of operations with a model. The suites pass the time to the
 * store.
 *
 * @example conformance("memory", () => createMemoryStore(), { sequences: 5000, bans: true });
 */
export function conformance(
  name: string,
  createStore: () => Store,
  { ageKeys, ...model }: ConformanceOptions,
): void {
  describe(name, () => {
    storeSuite(createStore, { ageKeys });
    calendarSuite(createStore);
    vectorSuite(createStore, { ageKeys });
    modelSuite(createStore, model);
    slotSuite(createStore, model.sequences);
    slidingSuite(createStore, model.sequences);
  });
}
