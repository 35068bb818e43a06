import { weir } from "weir";
import config from "./weir.config.ts";

export { CounterObject } from "weir";

export default weir(config);
