import { createEngineStore } from "../../../dev/engine-store.ts";
import { conformance } from "../../suite/conformance.ts";

conformance("the engine", createEngineStore, {
  sequences: 2000,
  back: [1, 999, 20_000, 100_000],
  blocks: true,
  bans: true,
});
