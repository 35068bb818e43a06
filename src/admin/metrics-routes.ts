import { Hono } from "hono";
import type { AdminEnv } from "./admin-env.ts";

/** The metrics, at `/_weir/metrics`. */
export const metricsRoutes = new Hono<AdminEnv>();
