-- What the machine and the attempts of each worker use, as JSON (model/usage.py).
ALTER TABLE workers ADD COLUMN usage TEXT;
