import { createForward } from "../../src/http/forward.ts";
import { bindings } from "./bindings.ts";

/** To the origin and back: Weir's own way, so that what tells the subjects apart is the limiting. */
export const forward = createForward({ kind: "url", base: bindings.ORIGIN_URL });
