import { describe } from "vitest";
import { OBJECT_FAULTS } from "./object-faults.ts";
import { objectChaos } from "./stages.ts";
import { chaosSuite } from "./support/chaos-suite.ts";

describe("Durable Objects", () => {
  chaosSuite(OBJECT_FAULTS, objectChaos);
});
