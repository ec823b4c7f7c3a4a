/** `DATABASE_URL`. */
import { z } from 'zod'

/** Version of PostgreSQL. */
export const OLDEST_POSTGRES = 15

export const databaseUrl = z
  .url({
    protocol: /^postgres(ql)?$/,
    error:
      'must be an address like postgres://sandlot:PASSWORD@db.example.org/sandlot; in the password / is written %2F, @ %40, # %23, ? %3F and % %25',
  })
  .optional()
