/**
 * Bodies of the routes of sign-in: providers, one's sign-ins, the second factor, invitations,
 * resets, and the scopes of API keys.
 */
import { z } from 'zod'
import { emailAddress, personName } from './account-fields.ts'
import { role } from './role.ts'

/** An administrator's password is always accepted: the way back when a provider is away. */
export const localSignIn = z.enum(['all', 'admins'])
export type LocalSignIn = z.infer<typeof localSignIn>

/** `GET /api/sign-in/providers` (public): what the page of sign-in shows. */
export const signInWays = z.object({
  /** `admins`: the form of address and password is for administrators alone. */
  local: localSignIn,
  providers: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      /** False: its discovery has not been read yet. A try to sign in reads it again. */
      ready: z.boolean(),
    }),
  ),
  /** Whether people can ask for a reset of their password by mail. */
  reset: z.boolean(),
})
export type SignInWays = z.infer<typeof signInWays>

/** Where the page goes afterwards: a path of this Sandlot. Default `/`. */
const returnTo = z.string().max(2_000).optional()

/**
 * `POST /api/sign-in/providers/:id` (public) → `{url}`, which the page opens. The provider sends
 * the browser back to `returnTo`, or to `/sign-in?problem=<id>`. `invitation` is accepted by it.
 */
export const beginSignInRequest = z.strictObject({
  returnTo,
  invitation: z.string().min(1).max(200).optional(),
})
/**
 * `POST /api/sign-in/providers/:id/link` (cookie) → `{url}`: the signed-in account gets this way
 * in. Comes back to `returnTo`, or to `returnTo?problem=<id>`.
 */
export const linkProviderRequest = z.strictObject({
  returnTo,
  /** Of an account that has one. */
  password: z.string().max(128).optional(),
})
export const signInUrl = z.object({ url: z.string() })

/** `GET /api/sign-in/problems/:id` (public), for ten minutes: why a provider's sign-in failed. */
export const signInProblem = z.object({ message: z.string() })

/** `POST /api/sign-out` → 204, or 200 with the address that ends it at the provider too. */
export const signedOut = z.object({ url: z.string() })

/**
 * `POST /api/sign-in` answers this instead of `Me` where the account has a second factor: then
 * `POST /api/sign-in/code` within ten minutes → `Me`.
 */
export const secondFactorWanted = z.object({ secondFactor: z.literal(true) })
/** `code`: six digits, or one of the recovery codes. */
export const secondFactorRequest = z.strictObject({ code: z.string().min(1).max(50) })

/** `GET /api/account/ways` (cookie): how the signed-in person can sign in. */
export const accountWays = z.object({
  /** False: only through a provider. */
  password: z.boolean(),
  secondFactor: z.boolean(),
  /** `DELETE /api/account/providers/:id` → 204; `conflict` for the only way in. */
  providers: z.array(z.object({ id: z.string(), name: z.string(), linkedAt: z.number() })),
})
export type AccountWays = z.infer<typeof accountWays>

/**
 * `POST /api/account/second-factor` (cookie) → `NewSecondFactor`; it holds once
 * `POST /api/account/second-factor/confirm` has got a code (→ 204). `POST
 * /api/account/second-factor/disable` (`secondFactorRemoval`) → 204. An administrator removes that
 * of a person: `DELETE /api/users/:id/second-factor` → 204.
 */
export const secondFactorRemoval = z.strictObject({
  password: z.string().min(1).max(128),
  code: secondFactorRequest.shape.code,
})
export const secondFactorPassword = z.strictObject({ password: z.string().min(1).max(128) })
export const newSecondFactor = z.object({
  /** `otpauth://totp/…`, for a QR code; the secret is its parameter `secret`. */
  uri: z.string(),
  /** Shown this once. Each is good for one sign-in. */
  recoveryCodes: z.array(z.string()),
})
export type NewSecondFactor = z.infer<typeof newSecondFactor>

/** One sign-in of a person. */
const signInEntry = z.object({
  id: z.string(),
  /** The one that asks. */
  current: z.boolean(),
  /** As the browser describes itself; for example “Firefox on Linux”. */
  device: z.string(),
  address: z.string().nullable(),
  /** Name of the provider; null: by password. */
  provider: z.string().nullable(),
  since: z.number(),
  lastUsedAt: z.number(),
})
export type SignInEntry = z.infer<typeof signInEntry>
/**
 * `GET /api/account/sign-ins` (cookie), last used first. `DELETE /api/account/sign-ins/:id` → 204;
 * `DELETE /api/account/sign-ins` → 204: all others.
 */
export const signInEntries = z.object({ signIns: z.array(signInEntry) })

// ── API keys
// ────────────────────────────────────────────────────────────────────────────────────────────

/**
 * What a key may do. `chat`: send messages, change chats and settings; `read`: everything that
 * changes nothing, but files; `files`: the files of the sandbox and uploads; `exec`: run commands
 * directly; `admin`: what only administrators may, where its owner is one.
 */
export const keyScope = z.enum(['chat', 'read', 'files', 'exec', 'admin'])
export type KeyScope = z.infer<typeof keyScope>
/** Of a key that was made without scopes. */
export const DEFAULT_KEY_SCOPES: readonly KeyScope[] = ['chat', 'read', 'files', 'exec']

// ── Invitations
// ────────────────────────────────────────────────────────────────────────────────────────────

/** `POST /api/invitations` (administrators) → 201 with a `NewInvitation`. */
export const newInvitationRequest = z.strictObject({
  role: role.default('member'),
  /** Ids. */
  teams: z.array(z.string().max(64)).max(100).default([]),
  /** Only this address can accept it; any can where it is absent. */
  email: z.email().max(254).optional(),
  /** Default: a week. */
  expiresInHours: z
    .number()
    .int()
    .min(1)
    .max(24 * 90)
    .default(24 * 7),
})
const invitation = z.object({
  id: z.string(),
  role,
  teams: z.array(z.string()),
  email: z.string().nullable(),
  createdAt: z.number(),
  /** Name of the administrator who made it. */
  createdBy: z.string(),
  expiresAt: z.number(),
  /** Name of the person it made; null: not used yet. */
  usedBy: z.string().nullable(),
})
export type Invitation = z.infer<typeof invitation>
/** `url` is shown this once: `/invitation?token=…`. */
export const newInvitation = invitation.extend({ url: z.string() })
export type NewInvitation = z.infer<typeof newInvitation>
/** `GET /api/invitations` (administrators), newest first. `DELETE /api/invitations/:id` → 204. */
export const invitationList = z.object({ invitations: z.array(invitation) })

/** `POST /api/invitations/look` (public) → `InvitationOffer`: what the page of the link shows. */
export const invitationLook = z.strictObject({ token: z.string().min(1).max(200) })
export const invitationOffer = z.object({
  role,
  email: z.string().nullable(),
  /** Who invites. */
  createdBy: z.string(),
  expiresAt: z.number(),
})
export type InvitationOffer = z.infer<typeof invitationOffer>
/** `POST /api/invitations/accept` (public) → `Me`, signed in. */
export const acceptInvitationRequest = z.strictObject({
  token: z.string().min(1).max(200),
  name: personName,
  email: emailAddress,
  password: z.string().min(8).max(128),
})

// ── Resets
// ────────────────────────────────────────────────────────────────────────────────────────────

/** `POST /api/users/:id/password` (administrators) → the new password, shown this once. */
export const newPassword = z.object({ password: z.string() })
/**
 * `POST /api/reset` (public) → 204, whether or not there is such a person; `not_implemented` where
 * no mail can be sent. The mail leads to `/reset?token=…`.
 */
export const resetRequest = z.strictObject({ email: z.string().min(1).max(254) })
/** `POST /api/reset/password` (public) → 204. All sign-ins of the person end. */
export const resetPasswordRequest = z.strictObject({
  token: z.string().min(1).max(200),
  password: z.string().min(8).max(128),
})
