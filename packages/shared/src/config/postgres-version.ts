/** Oldest version of PostgreSQL that Sandlot works with. */
export const OLDEST_POSTGRES = 15
