import { weir } from "edge-weir";
import config from "./weir.config.ts";

export { ControlObject, CounterObject } from "edge-weir";

export default weir(config);
