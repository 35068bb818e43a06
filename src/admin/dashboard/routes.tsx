import { Hono } from "hono";
import type { AdminEnv } from "../admin-env.ts";

/** The pages of the dashboard and their assets, below `/_weir/`. */
export const dashboardRoutes = new Hono<AdminEnv>();
