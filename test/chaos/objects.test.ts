import { describe } from "vitest";
import { objectChaos } from "./environments.ts";
import { OBJECT_FAULTS } from "./object-faults.ts";
import { chaosSuite } from "./support/chaos-suite.ts";

describe("Durable Objects", () => {
  chaosSuite(OBJECT_FAULTS, objectChaos);
});
