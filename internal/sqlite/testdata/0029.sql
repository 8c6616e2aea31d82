UPDATE conversations SET settings = '{"options":[{"id":"mode","name":"Mode","value":"code","wanted":"plan","values":[{"id":"plan","name":"Plan"}]}]}' WHERE id = '00000000000000f1';
