import { engineStore } from "../../suite/engine-store.ts";
import { vectorSuite } from "../../suite/vector-suite.ts";

vectorSuite("the engine", engineStore);
