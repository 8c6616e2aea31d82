-- One that was used after its last change of state.
UPDATE last_uses SET at = 1800000000000000 WHERE sandbox = '00000000000000aa';
