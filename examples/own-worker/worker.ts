import { weir } from "edge-weir";
import config from "./weir.config.ts";

export { CounterObject } from "edge-weir";

export default weir(config);
