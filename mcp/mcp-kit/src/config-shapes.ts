/** Settings that more than one of our servers has. */
import { z } from 'zod'

/**
 * An address of an API that gets a credential: https, or plain http on this machine alone (tests, a
 * proxy beside us). Only its origin counts.
 */
export const apiAddress = z
  .url({ error: 'must be an address like https://api.example.org' })
  .refine((text) => {
    const { protocol, hostname } = new URL(text)
    return (
      protocol === 'https:' ||
      (protocol === 'http:' && /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(hostname))
    )
  }, 'must be https; plain http only on this machine, because a credential is sent there')
