import { Eye, EyeOff } from 'lucide-react'
import { useState } from 'react'
import { IconButton } from './button.tsx'
import { Field, type FieldProps } from './field.tsx'

/**
 * A password, which its owner may look at while typing. `autoComplete` says to password managers
 * which one it is.
 */
export function PasswordField(
  props: Omit<FieldProps, 'type'> & { autoComplete: 'current-password' | 'new-password' },
) {
  const [shown, setShown] = useState(false)
  return (
    <Field
      {...props}
      // Shown, it is still nothing to correct or to write large.
      type={shown ? 'text' : 'password'}
      spellCheck={false}
      autoCapitalize="off"
      autoCorrect="off"
      beside={
        <IconButton
          label={`${shown ? 'Hide' : 'Show'} ${props.label.toLowerCase()}`}
          className="absolute inset-y-1 right-1 pointer-coarse:inset-y-0 pointer-coarse:right-0"
          onClick={() => setShown(!shown)}
        >
          {shown ? <EyeOff aria-hidden /> : <Eye aria-hidden />}
        </IconButton>
      }
    />
  )
}

/**
 * The owner of a form's passwords, where it is not typed: password managers look for a text input
 * before them, and overlook hidden ones. People and screen readers need none.
 */
export function PasswordOwner(props: { email: string }) {
  return (
    <input
      type="text"
      name="username"
      autoComplete="username"
      value={props.email}
      readOnly
      tabIndex={-1}
      aria-hidden
      className="sr-only"
    />
  )
}
